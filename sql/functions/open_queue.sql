-- open_queue: make the queue known, with a doorbell, and return the doorbell's name; jobs due later than `ring_within` will not ring.
CREATE OR REPLACE FUNCTION hybrid_runner.open_queue(name text, ring_within interval DEFAULT '60 seconds') RETURNS text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_column
DECLARE
    doorbell text;
BEGIN
    INSERT INTO hybrid_runner.queues (name, ring_within) VALUES (open_queue.name, open_queue.ring_within)
    ON CONFLICT (name) DO NOTHING
    RETURNING queues.doorbell INTO doorbell;
    IF FOUND THEN
        EXECUTE format('CREATE SEQUENCE %s AS bigint MINVALUE 0 START 0', doorbell);
        UPDATE hybrid_runner.queues SET bell = doorbell::regclass WHERE name = open_queue.name;
    ELSE
        UPDATE hybrid_runner.queues SET ring_within = open_queue.ring_within
        WHERE name = open_queue.name AND ring_within < open_queue.ring_within;
        SELECT queues.doorbell INTO doorbell FROM hybrid_runner.queues WHERE name = open_queue.name;
    END IF;
    RETURN doorbell;
END
$$;
