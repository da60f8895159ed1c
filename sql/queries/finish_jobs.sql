-- finish_jobs: move ended jobs to the archive; returns the ids moved, a stale claim moves nothing.
-- $1 int8[] ids, $2 int8[] claims, $3 text[] states, $4 text[] results, $5 text[] errors
-- odd: states that are NULL are all completed, results that are NULL all JSON null, errors that are NULL all none.
-- odd: "id = ANY ($1)" stands beside the join so that no plan can choose to walk the table.
WITH settled AS (
    SELECT
        s.id, s.claim,
        CASE WHEN $3::text[] IS NULL THEN 'completed' ELSE s.state END AS state,
        CASE WHEN $4::text[] IS NULL THEN jsonb 'null' ELSE s.result END AS result,
        s.error
    FROM unnest($1::int8[], $2::int8[], $3::text[], $4::text[]::jsonb[], $5::text[]::jsonb[]) AS s (id, claim, state, result, error)
),
gone AS (
    DELETE FROM hybrid_runner.jobs AS j USING settled AS s
    WHERE j.id = ANY ($1) AND j.id = s.id
        -- No test of the state: a queued job has no claim, and the planner would expect one row and join in loops.
        AND j.claim = s.claim
    RETURNING j.*, s.state AS final_state, s.result, s.error
)
INSERT INTO hybrid_runner.archive (
    id, queue, kind, priority, payload, data, key, run_at, max_attempts, timeout, finish_by, traceparent, state, attempt,
    claim, worker_id, started_at, progress, errors, version, cancel_requested_at, created_at, finished_at, result
)
SELECT
    g.id, g.queue, g.kind, g.priority, g.payload, g.data, g.key, g.run_at, g.max_attempts, g.timeout, g.finish_by, g.traceparent,
    g.final_state::hybrid_runner.job_state, g.attempt, g.claim, g.worker_id, g.started_at, g.progress,
    CASE WHEN g.error IS NULL THEN g.errors ELSE coalesce(g.errors, '[]') || g.error END,
    g.version + 1, g.cancel_requested_at, g.created_at, clock_timestamp(), g.result
FROM gone AS g
RETURNING id
