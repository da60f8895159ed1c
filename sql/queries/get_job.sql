-- get_job: one job, live or archived; of payload, data, progress, errors and result, those that are
--   named.
-- $1 int8 id, $2 text[] carried
-- odd: what is not named is not read: it may be large, or be damaged.
SELECT
    id, queue, kind, priority, CASE WHEN 'payload' = ANY ($2) THEN payload END AS payload, CASE WHEN 'data' = ANY ($2) THEN data END AS data,
    key, run_at, max_attempts, timeout, finish_by, traceparent, enqueued_by, state::text AS state, attempt, snoozes, claim, worker_id,
    started_at, CASE WHEN 'progress' = ANY ($2) THEN progress END AS progress, CASE WHEN 'errors' = ANY ($2) THEN errors END AS errors, version,
    cancel_requested_at, created_at, finished_at, CASE WHEN 'result' = ANY ($2) THEN result END AS result
FROM (
    SELECT j.*, NULL::timestamptz AS finished_at, NULL::jsonb AS result FROM hybrid_runner.jobs AS j WHERE j.id = $1
    UNION ALL
    SELECT a.* FROM hybrid_runner.archived(ARRAY(
        SELECT i.id FROM unnest(ARRAY[$1]) AS i (id) WHERE NOT EXISTS (SELECT FROM hybrid_runner.jobs AS j WHERE j.id = i.id)
    )) AS a
) AS job
