-- list_jobs: the newest jobs, live and archived, that match what is given (NULL: any).
-- $1 text state, $2 text queue, $3 text kind, $4 int8 most, $5 bool notes
-- odd: a job with the key `>k` waits for the end of the one that has the key k.
-- odd: payload, data and all errors but the last are not read: they may be large. Without $5,
--   neither are progress, error and result, one of which may be damaged.
-- odd: times of years that the driver cannot read, which whoever has a worker's login can write,
--   must not hide other jobs.
SELECT
    id, queue, kind, priority, key, run_at, max_attempts, timeout, finish_by, traceparent, enqueued_by, state::text AS state, attempt,
    snoozes, waits_for, claim, worker_id,
    CASE WHEN started_at NOT BETWEEN '1970-01-01 UTC' AND '9999-01-01 UTC' THEN '1970-01-01 UTC' ELSE started_at END AS started_at,
    version,
    CASE WHEN cancel_requested_at NOT BETWEEN '1970-01-01 UTC' AND '9999-01-01 UTC' THEN '1970-01-01 UTC' ELSE cancel_requested_at END AS cancel_requested_at,
    CASE WHEN created_at NOT BETWEEN '1970-01-01 UTC' AND '9999-01-01 UTC' THEN '1970-01-01 UTC' ELSE created_at END AS created_at,
    CASE WHEN finished_at NOT BETWEEN '1970-01-01 UTC' AND '9999-01-01 UTC' THEN '1970-01-01 UTC' ELSE finished_at END AS finished_at,
    CASE WHEN $5 THEN progress END AS progress, CASE WHEN $5 THEN errors -> -1 END AS error, CASE WHEN $5 THEN left(result::text, 200) END AS result,
    source, row_key, CASE WHEN source IS NOT NULL THEN (SELECT t.relation_name FROM hybrid_runner.sources AS t WHERE t.id = source) END AS table_name,
    CASE WHEN key LIKE '>%' AND state IN ('queued', 'running') THEN (SELECT h.id FROM hybrid_runner.jobs AS h WHERE h.key = pg_catalog.substr(all_jobs.key, 2)) END AS behind
FROM hybrid_runner.all_jobs
WHERE ($1::text IS NULL OR state = $1::hybrid_runner.job_state)
    AND ($2::text IS NULL OR queue = $2)
    AND ($3::text IS NULL OR kind = $3)
ORDER BY id DESC
LIMIT $4
