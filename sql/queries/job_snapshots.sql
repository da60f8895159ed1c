-- job_snapshots: the state of these jobs, live or archived, without payloads, results and errors.
-- $1 int8[] ids
SELECT
    j.id, j.queue, j.kind, j.state::text AS state, j.version, j.priority, j.attempt, j.snoozes, j.max_attempts, j.run_at, j.worker_id,
    j.started_at, j.finished_at, j.progress, j.cancel_requested_at, j.created_at
FROM hybrid_runner.all_jobs AS j
WHERE j.id = ANY ($1)
