-- find_hung: those of this worker's jobs that are past their time-out by some, as claims.
-- $1 text worker_id, $2 int8[] ids, $3 interval timeout_grace
-- odd: payload and data are not needed, and may be large.
-- odd: what stands there of years that the driver cannot read, or to which no budget can be added,
--   somebody with a worker's login has written; it must not keep others' jobs from being found.
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
WHERE j.id = ANY ($2) AND j.state = 'running' AND j.worker_id = $1
    AND CASE WHEN isfinite(j.started_at) THEN clock_timestamp() - j.started_at > j.timeout + $3::interval ELSE false END
