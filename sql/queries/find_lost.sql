-- find_lost: running jobs whose claim no living worker has, as claims; the caller declares
--   what becomes of them.
-- $1 int8 most, $2 int8 after_id
-- odd: payload and data are not needed, and may be large.
-- odd: it walks the table: there is no index of running jobs, since every claim would pay for it,
--   and this runs seldom.
SELECT
    j.id, j.queue, j.kind, j.priority, '' AS payload, NULL AS data, j.key, j.run_at, j.max_attempts,
    date_part('epoch', j.timeout) AS seconds, j.finish_by, j.traceparent, j.attempt, j.claim, j.started_at, j.created_at,
    j.snoozes, j.worker_id
FROM hybrid_runner.jobs AS j
WHERE j.state = 'running' AND j.id > $2 AND NOT EXISTS (
    SELECT FROM hybrid_runner.workers AS w WHERE w.id = j.worker_id AND w.dead_at IS NULL AND j.claim >= w.first_claim
)
ORDER BY j.id
LIMIT $1
