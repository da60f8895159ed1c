-- get_public_job: what everybody may see of one job, live or archived; what it carries is not read.
-- $1 int8 id
SELECT
    id, queue, kind, priority, run_at, max_attempts, timeout, finish_by, traceparent, state::text AS state, attempt, snoozes, claim,
    worker_id, started_at, progress, version, cancel_requested_at, created_at, finished_at
FROM hybrid_runner.all_jobs
WHERE id = $1
