-- find_hung: those of this worker's jobs that are past their time-out by some, as claims.
-- $1 text worker_id, $2 int8[] ids, $3 interval timeout_grace
-- odd: payload and data are not needed, and may be large.
SELECT
    j.id, j.queue, j.kind, j.priority, '' AS payload, NULL AS data, j.key, j.run_at, j.max_attempts,
    date_part('epoch', j.timeout) AS seconds, j.finish_by, j.traceparent, j.attempt, j.claim, j.started_at, j.created_at,
    j.snoozes, j.worker_id
FROM hybrid_runner.jobs AS j
WHERE j.id = ANY ($2) AND j.state = 'running' AND j.worker_id = $1
    AND CASE WHEN isfinite(j.started_at) THEN clock_timestamp() - j.started_at > j.timeout + $3::interval ELSE false END
