-- give_free_keys: the guarantee behind pass_keys(): who sleeps until a key is free that nobody has
-- is given it; says how many were. It happens when the end of a job met somebody who had a lock on
-- the one that waits and rolled back, or when a job was deleted and not ended.
CREATE OR REPLACE FUNCTION hybrid_runner.give_free_keys() RETURNS integer
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
-- One index fits: who sleeps is at the end of each lane.
SET plan_cache_mode = 'force_generic_plan' SET enable_seqscan = off
AS $$
DECLARE
    free text[];
BEGIN
    SELECT array_agg(substr(asleep.key, 2)) INTO free
    FROM hybrid_runner.queues AS q
    CROSS JOIN generate_series(0, 9) AS lane (priority)
    CROSS JOIN LATERAL (
        SELECT j.key
        FROM hybrid_runner.jobs AS j
        WHERE j.state = 'queued' AND j.queue = q.name AND j.priority = lane.priority
            AND j.run_at = 'infinity' AND starts_with(j.key, '>')
            AND NOT EXISTS (SELECT FROM hybrid_runner.jobs AS h WHERE h.key = substr(j.key, 2))
        LIMIT 1000
    ) AS asleep;
    RETURN CASE WHEN free IS NULL THEN 0 ELSE hybrid_runner.pass_keys(free) END;
END
$$;
