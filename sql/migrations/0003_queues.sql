-- why: what is known of a queue (its doorbell, whether it is paused); a queue works without a row, it then always rings
-- locks: none that matters (creates new objects only)

CREATE TABLE hybrid_runner.queues (
    name text PRIMARY KEY,
    number integer GENERATED ALWAYS AS IDENTITY UNIQUE,
    -- a sequence: "muted until" in server-clock milliseconds, read and written outside MVCC
    doorbell text GENERATED ALWAYS AS ('hybrid_runner.doorbell_' || number::text) STORED,
    -- the longest fallback poll any worker has announced: later jobs need no ring, a sweep sees them in time
    ring_within interval NOT NULL DEFAULT '60 seconds',
    paused_at timestamptz,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    CONSTRAINT queues_name_is_1_to_48_of_letters_digits_and_punctuation
        CHECK (name ~ '^[A-Za-z0-9_][A-Za-z0-9_.:/-]{0,47}$')
);

CREATE FUNCTION hybrid_runner.open_queue(name text, ring_within interval DEFAULT '60 seconds') RETURNS text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_column
DECLARE
    bell text;
BEGIN
    INSERT INTO hybrid_runner.queues (name, ring_within) VALUES (open_queue.name, open_queue.ring_within)
    ON CONFLICT (name) DO NOTHING
    RETURNING doorbell INTO bell;
    IF FOUND THEN
        EXECUTE format('CREATE SEQUENCE %s AS bigint MINVALUE 0 START 0', bell);
    ELSE
        UPDATE hybrid_runner.queues SET ring_within = open_queue.ring_within
        WHERE name = open_queue.name AND ring_within < open_queue.ring_within;
        SELECT doorbell INTO bell FROM hybrid_runner.queues WHERE name = open_queue.name;
    END IF;
    RETURN bell;
END
$$;
