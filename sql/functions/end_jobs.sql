-- end_jobs: move ended jobs to the archive; returns the ids moved. Every job that ends comes this
-- way: those that workers finish, rescue or find expired by finish_jobs.sql, all others by
-- cancel(). What is to happen whenever a job ends belongs here.
-- A claim that is not the job's own any more moves nothing; a claim that is NULL stands for whoever
-- has a lock on the row.
-- States that are NULL are all completed, results that are NULL all JSON null, errors that are NULL
-- all none.
-- PL/pgSQL, because a function in SQL is planned from its text at every call before PostgreSQL 18.
-- A batch of 200 takes 2 to 4 % longer than the bare statement, which is less than half a percent
-- of what a job costs a worker.
CREATE OR REPLACE FUNCTION hybrid_runner.end_jobs(
    ids bigint[], claims bigint[], states text[], results text[], errors text[],
    cancelled_at timestamptz DEFAULT NULL
) RETURNS SETOF bigint
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    RETURN QUERY
    WITH settled AS (
        SELECT
            s.id, s.claim,
            CASE WHEN end_jobs.states IS NULL THEN 'completed' ELSE s.state END AS state,
            CASE WHEN end_jobs.results IS NULL THEN jsonb 'null' ELSE s.result END AS result,
            s.error
        FROM unnest(
            end_jobs.ids, end_jobs.claims, end_jobs.states, end_jobs.results::jsonb[],
            end_jobs.errors::jsonb[]
        ) AS s (id, claim, state, result, error)
    ),
    gone AS (
        DELETE FROM hybrid_runner.jobs AS j USING settled AS s
        -- The ids stand beside the join so that no plan can choose to walk the table.
        WHERE j.id = ANY (end_jobs.ids) AND j.id = s.id
            -- No test of the state: a queued job has no claim, and the planner would expect one row
            -- and join in loops.
            AND (j.claim = s.claim OR s.claim IS NULL)
        RETURNING j.*, s.state AS final_state, s.result, s.error
    )
    INSERT INTO hybrid_runner.archive AS a (
        id, queue, kind, priority, payload, data, key, run_at, max_attempts, timeout, finish_by,
        traceparent, enqueued_by, state, attempt, snoozes, claim, worker_id, started_at, progress,
        errors, version, cancel_requested_at, created_at, finished_at, result
    )
    SELECT
        g.id, g.queue, g.kind, g.priority,
        g.payload, g.data,
        g.key, g.run_at, g.max_attempts, g.timeout, g.finish_by, g.traceparent, g.enqueued_by,
        g.final_state::hybrid_runner.job_state,
        -- Failed from the queue: the attempt that could not begin counts.
        CASE
            WHEN g.state = 'queued' AND g.final_state = 'failed' THEN g.attempt + 1
            ELSE g.attempt
        END,
        g.snoozes, g.claim, g.worker_id, g.started_at,
        g.progress,
        CASE
            WHEN g.error IS NULL THEN g.errors
            WHEN jsonb_array_length(g.errors) >= 20 THEN (g.errors - 0) || g.error
            ELSE coalesce(g.errors, '[]') || g.error
        END,
        g.version + 1, coalesce(g.cancel_requested_at, end_jobs.cancelled_at), g.created_at,
        clock_timestamp(), g.result
    FROM gone AS g
    RETURNING a.id;
END
$$;
