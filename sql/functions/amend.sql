-- amend: change a queued job if it is still at the version named; says amended, stale, running,
-- finished or unknown.
CREATE OR REPLACE FUNCTION hybrid_runner.amend(
    id bigint, version integer, payload jsonb DEFAULT NULL, priority integer DEFAULT NULL,
    run_at timestamptz DEFAULT NULL, data jsonb DEFAULT NULL
) RETURNS text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_column
DECLARE
    job hybrid_runner.jobs;
BEGIN
    IF amend.priority NOT BETWEEN 0 AND 9 THEN
        RAISE EXCEPTION 'priority must be 0 to 9, not %', amend.priority
            USING ERRCODE = 'check_violation', CONSTRAINT = 'jobs_priority_is_0_to_9';
    END IF;
    SELECT j.* INTO job FROM hybrid_runner.jobs AS j WHERE j.id = amend.id FOR UPDATE;
    IF NOT FOUND THEN
        RETURN CASE WHEN EXISTS (SELECT FROM hybrid_runner.archived(ARRAY[amend.id]))
            THEN 'finished' ELSE 'unknown' END;
    ELSIF job.version IS DISTINCT FROM amend.version THEN
        RETURN 'stale';
    -- One whose key begins with '>' has not begun: a worker is just asking whether it may, and asks
    -- in vain.
    ELSIF job.state = 'running' AND starts_with(job.key, '>') IS NOT TRUE THEN
        RETURN 'running';
    END IF;
    UPDATE hybrid_runner.jobs AS j SET
        payload = coalesce(amend.payload, j.payload),
        priority = coalesce(amend.priority, j.priority),
        -- What sleeps until a key is free is looked at again: the key may have passed it by.
        run_at = coalesce(amend.run_at, CASE
            WHEN starts_with(j.key, '>') AND j.run_at = 'infinity' THEN clock_timestamp()
            ELSE j.run_at
        END),
        data = coalesce(amend.data, j.data),
        state = 'queued', claim = NULL, worker_id = NULL, started_at = NULL,
        attempt = CASE WHEN j.state = 'running' THEN j.attempt - 1 ELSE j.attempt END,
        version = j.version + 1
    WHERE j.id = amend.id
    RETURNING j.run_at INTO job.run_at;
    PERFORM hybrid_runner.ring(job.queue, job.run_at);
    PERFORM hybrid_runner.publish(job.queue, job.kind, amend.id);
    RETURN 'amended';
END
$$;
