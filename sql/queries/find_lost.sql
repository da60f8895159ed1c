-- find_lost: running jobs whose claim no living worker has, as claims; the caller declares
--   what becomes of them.
-- $1 int8 most, $2 int8 after_id
-- odd: payload and data are not needed, and may be large.
-- odd: what stands there of years that the driver cannot read, or to which no budget can be added,
--   somebody with a worker's login has written; it must not keep others' jobs from being found.
-- odd: it walks the table: there is no index of running jobs, since every claim would pay for it,
--   and this runs seldom.
SELECT
    j.id, j.queue, j.kind, j.priority, '' AS payload, NULL AS data, j.key, least(j.run_at, clock_timestamp()) AS run_at, j.max_attempts,
    date_part('epoch', j.timeout) AS seconds, j.finish_by, j.traceparent, j.attempt, j.claim,
    CASE WHEN j.started_at NOT BETWEEN '1970-01-01 UTC' AND '9999-01-01 UTC' THEN '1970-01-01 UTC' ELSE j.started_at END AS started_at,
    CASE WHEN j.created_at NOT BETWEEN '1970-01-01 UTC' AND '9999-01-01 UTC' THEN '1970-01-01 UTC' ELSE j.created_at END AS created_at,
    j.snoozes,
    CASE
        WHEN j.began_at < '1970-01-01 UTC' THEN '1970-01-01 UTC'
        WHEN j.began_at > clock_timestamp() THEN clock_timestamp()
        ELSE j.began_at
    END AS began_at,
    j.max_snoozes, date_part('epoch', j.max_duration) AS max_duration,
    date_part('epoch', j.finish_within) AS finish_within, j.waits_for, j.source, j.row_key, j.schedule,
    CASE WHEN j.tick BETWEEN '1970-01-01 UTC' AND '9999-01-01 UTC' THEN j.tick END AS tick, j.start_by, j.worker_id,
    clock_timestamp() AS found_at
FROM hybrid_runner.jobs AS j
WHERE j.state = 'running' AND j.id > $2 AND NOT EXISTS (
    SELECT FROM hybrid_runner.workers AS w WHERE w.id = j.worker_id AND w.dead_at IS NULL AND j.claim >= w.first_claim
)
ORDER BY j.id
LIMIT $1
