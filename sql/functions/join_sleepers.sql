-- join_sleepers: the caller's session sleeps on these queues: it has to be rung for.
-- Committed before the bell is opened: see mute_bell.sql. The row is kept while the session lasts,
-- and changed in place, so that it costs no index entry each time.
CREATE OR REPLACE FUNCTION hybrid_runner.join_sleepers(queues text[]) RETURNS void
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
    INSERT INTO hybrid_runner.sleepers AS s (queue, pid, is_asleep)
    SELECT DISTINCT q.name, pg_backend_pid(), true FROM unnest(queues) AS q (name)
    ON CONFLICT ON CONSTRAINT sleepers_pkey DO UPDATE SET is_asleep = true WHERE NOT s.is_asleep
$$;
