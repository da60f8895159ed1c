-- list_jobs: the newest jobs, live and archived, that match what is given (NULL: any).
-- $1 text state, $2 text queue, $3 text kind, $4 int8 most
SELECT
    id, queue, kind, priority, payload, data, key, run_at, max_attempts, timeout, finish_by, traceparent, enqueued_by,
    state::text AS state, attempt, snoozes, claim, worker_id, started_at, progress, errors, version, cancel_requested_at, created_at, finished_at, result
FROM hybrid_runner.all_jobs
WHERE ($1::text IS NULL OR state = $1::hybrid_runner.job_state)
    AND ($2::text IS NULL OR queue = $2)
    AND ($3::text IS NULL OR kind = $3)
ORDER BY id DESC
LIMIT $4
