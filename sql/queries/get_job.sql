-- get_job: one job, live or archived; of payload, data, progress, errors, history and result, those
--   that are named.
-- $1 int8 id, $2 text[] carried
-- odd: a job with the key `>k` waits for the end of the one that has the key k.
-- odd: what is not named is not read: it may be large, or be damaged.
SELECT
    id, queue, kind, priority, CASE WHEN 'payload' = ANY ($2) THEN payload END AS payload, CASE WHEN 'data' = ANY ($2) THEN data END AS data,
    key, run_at, max_attempts, timeout, finish_by, start_by, max_snoozes, max_duration, finish_within, traceparent, enqueued_by, state::text AS state, attempt, snoozes,
    began_at, waits_for, claim, worker_id,
    started_at, CASE WHEN 'progress' = ANY ($2) THEN progress END AS progress, CASE WHEN 'errors' = ANY ($2) THEN errors END AS errors,
    CASE WHEN 'history' = ANY ($2) THEN history END AS history, version,
    cancel_requested_at, created_at, finished_at, CASE WHEN 'result' = ANY ($2) THEN result END AS result, followed_by,
    source, row_key, schedule, tick, (SELECT t.relation_name FROM hybrid_runner.sources AS t WHERE t.id = job.source) AS table_name,
    CASE WHEN key LIKE '>%' AND state IN ('queued', 'running') THEN (SELECT h.id FROM hybrid_runner.jobs AS h WHERE h.key = pg_catalog.substr(job.key, 2)) END AS behind
FROM (
    SELECT j.*, NULL::timestamptz AS finished_at, NULL::jsonb AS result, NULL::bigint[] AS followed_by FROM hybrid_runner.jobs AS j WHERE j.id = $1
    UNION ALL
    SELECT a.* FROM hybrid_runner.archived(ARRAY(
        SELECT i.id FROM unnest(ARRAY[$1]) AS i (id) WHERE NOT EXISTS (SELECT FROM hybrid_runner.jobs AS j WHERE j.id = i.id)
    )) AS a
) AS job
