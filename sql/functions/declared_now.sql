-- declared_now: the schedules that the code of some live worker declares.
CREATE OR REPLACE FUNCTION hybrid_runner.declared_now() RETURNS SETOF text
LANGUAGE sql STABLE
AS $$
    SELECT DISTINCT n.name
    FROM hybrid_runner.workers AS w CROSS JOIN LATERAL pg_catalog.unnest(w.schedules) AS n (name)
    WHERE w.dead_at IS NULL AND w.heartbeat_at + w.lease > pg_catalog.clock_timestamp()
$$;
