-- claim_job: take one due job by its id, as claim_jobs does, without its payload; no row when it is
--   not there to be taken.
-- $1 int8 id, $2 text queue, $3 text worker_id, $4 int4 max_attempts, $5 interval timeout,
-- $6 int8 claim, $7 bool are_ceilings
WITH picked AS MATERIALIZED (
    SELECT j.id
    FROM hybrid_runner.jobs AS j
    WHERE j.id = $1 AND j.queue = $2 AND j.state = 'queued' AND j.run_at <= now()
        AND NOT EXISTS (SELECT FROM hybrid_runner.queues AS q WHERE q.name = $2 AND q.paused_at IS NOT NULL)
    FOR UPDATE OF j SKIP LOCKED
)
UPDATE hybrid_runner.jobs AS j SET
    state = 'running',
    attempt = j.attempt + 1,
    claim = $6,
    worker_id = $3,
    started_at = now(),
    version = j.version + 1,
    max_attempts = CASE WHEN $7 THEN least(j.max_attempts, $4::int4) ELSE coalesce(j.max_attempts, $4::int4) END,
    timeout = CASE WHEN $7 THEN least(j.timeout, $5) ELSE coalesce(j.timeout, $5) END
WHERE j.id IN (SELECT p.id FROM picked AS p)
RETURNING
    j.id, j.queue, j.kind, j.priority, NULL AS payload, NULL AS data, j.key, j.run_at, j.max_attempts,
    date_part('epoch', j.timeout) AS seconds, j.finish_by, j.traceparent, j.attempt, j.claim,
    j.started_at, j.created_at, j.snoozes, j.began_at, j.max_snoozes,
    date_part('epoch', j.max_duration) AS max_duration, date_part('epoch', j.finish_within) AS finish_within,
    j.waits_for, j.source, j.row_key, j.schedule, j.tick, j.start_by
