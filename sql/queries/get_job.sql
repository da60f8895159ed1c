-- get_job: one job, live or archived, with every column.
-- $1 int8 id
SELECT
    id, queue, kind, priority, payload, data, key, run_at, max_attempts, timeout, finish_by, traceparent, enqueued_by,
    state::text AS state, attempt, snoozes, claim, worker_id, started_at, progress, errors, version, cancel_requested_at, created_at, finished_at, result
FROM (
    SELECT j.*, NULL::timestamptz AS finished_at, NULL::jsonb AS result FROM hybrid_runner.jobs AS j WHERE j.id = $1
    UNION ALL
    SELECT a.* FROM hybrid_runner.archived(ARRAY(
        SELECT i.id FROM unnest(ARRAY[$1]) AS i (id) WHERE NOT EXISTS (SELECT FROM hybrid_runner.jobs AS j WHERE j.id = i.id)
    )) AS a
) AS job
