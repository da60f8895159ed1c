-- requeue_jobs: put claimed jobs back for a later attempt; returns the ids put back, a stale
--   claim moves nothing.
-- $1 int8[] ids, $2 int8[] claims, $3 interval[] delays, $4 bool[] charged, $5 jsonb[] data,
-- $6 jsonb[] errors,
-- $7 text[] traceparents, $8 bool[] snoozed
-- odd: the delay is made of seconds: a day of an interval is longer or shorter when the session's
--   time zone changes its clocks.
-- odd: a trace that a worker began is written down, so that all later attempts are in it; NULL:
--   none of these.
-- odd: only what its handler asked for is a snooze, not what a worker that stops puts back; NULL:
--   none of these.
-- odd: a job whose cancelling was asked for is left alone: the caller finishes it as cancelled.
WITH settled AS (
    SELECT s.id, s.claim, s.delay, s.charged, s.data, s.error, s.traceparent, s.snoozed
    FROM unnest($1::int8[], $2::int8[], $3::interval[], $4::bool[], $5::jsonb[], $6::jsonb[], $7::text[], $8::bool[])
        AS s (id, claim, delay, charged, data, error, traceparent, snoozed)
),
requeued AS (
    UPDATE hybrid_runner.jobs AS j SET
        state = 'queued',
        run_at = clock_timestamp() + make_interval(secs => extract(epoch FROM s.delay)::float8), -- never behind a frontier
        attempt = j.attempt - CASE WHEN s.charged THEN 0 ELSE 1 END,
        snoozes = j.snoozes + CASE WHEN s.snoozed THEN 1 ELSE 0 END,
        data = coalesce(s.data, j.data),
        traceparent = coalesce(j.traceparent, s.traceparent),
        -- the last 20 errors are kept
        errors = CASE
            WHEN s.error IS NULL THEN j.errors
            WHEN jsonb_array_length(j.errors) >= 20 THEN (j.errors - 0) || s.error
            ELSE coalesce(j.errors, '[]') || s.error
        END,
        claim = NULL,
        worker_id = NULL,
        started_at = NULL,
        version = j.version + 1
    FROM settled AS s
    WHERE j.id = ANY ($1) AND j.id = s.id AND j.claim = s.claim
        -- "IS NULL" so written that the planner expects all rows and not one, which it would join
        -- in loops.
        AND num_nulls(j.cancel_requested_at) <> 0
    RETURNING j.id, j.queue, j.run_at
),
rung AS (
    SELECT hybrid_runner.ring(r.queue, min(r.run_at)) FROM requeued AS r GROUP BY r.queue, r.run_at > clock_timestamp()
)
SELECT r.id FROM requeued AS r WHERE (SELECT count(*) FROM rung) IS NOT NULL
