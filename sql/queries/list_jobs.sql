-- list_jobs: the newest jobs, live and archived, that match what is given (NULL: any).
-- $1 text state, $2 text queue, $3 text kind, $4 int8 most, $5 bool notes
-- odd: payload, data and all errors but the last are not read: they may be large. Without $5,
--   neither are progress, error and result, one of which may be damaged.
SELECT
    id, queue, kind, priority, key, run_at, max_attempts, timeout, finish_by, traceparent, enqueued_by, state::text AS state, attempt,
    snoozes, claim, worker_id, started_at, version, cancel_requested_at, created_at, finished_at,
    CASE WHEN $5 THEN progress END AS progress, CASE WHEN $5 THEN errors -> -1 END AS error, CASE WHEN $5 THEN left(result::text, 200) END AS result
FROM hybrid_runner.all_jobs
WHERE ($1::text IS NULL OR state = $1::hybrid_runner.job_state)
    AND ($2::text IS NULL OR queue = $2)
    AND ($3::text IS NULL OR kind = $3)
ORDER BY id DESC
LIMIT $4
