-- get_job: one job, live or archived, with every column.
-- $1 int8 id
SELECT
    id, queue, kind, priority, payload, data, key, run_at, max_attempts, timeout, finish_by, traceparent, enqueued_by,
    state::text AS state, attempt, snoozes, claim, worker_id, started_at, progress, errors, version, cancel_requested_at, created_at, finished_at, result
FROM hybrid_runner.all_jobs
WHERE id = $1
