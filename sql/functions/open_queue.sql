-- open_queue: make the queue known, with a doorbell, and return the doorbell's name.
-- Jobs due later than `ring_within` will not ring.
CREATE OR REPLACE FUNCTION hybrid_runner.open_queue(
    name text, ring_within interval DEFAULT '60 seconds'
) RETURNS text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_column
DECLARE
    its_number integer;
    its_name text;
BEGIN
    INSERT INTO hybrid_runner.queues (name, ring_within)
    VALUES (open_queue.name, open_queue.ring_within)
    ON CONFLICT (name) DO NOTHING
    RETURNING queues.number INTO its_number;
    IF FOUND THEN
        its_name := 'hybrid_runner.doorbell_' || its_number;
        EXECUTE format('CREATE SEQUENCE %s AS bigint MINVALUE 0 START 0', its_name);
        UPDATE hybrid_runner.queues SET doorbell = its_name::regclass WHERE name = open_queue.name;
    ELSE
        UPDATE hybrid_runner.queues SET ring_within = open_queue.ring_within
        WHERE name = open_queue.name AND ring_within < open_queue.ring_within;
        SELECT queues.doorbell INTO its_name FROM hybrid_runner.queues WHERE name = open_queue.name;
    END IF;
    RETURN its_name;
END
$$;
