-- requeue_jobs: put claimed jobs back for a later attempt; returns the ids put back, a stale
--   claim moves nothing.
-- $1 int8[] ids, $2 int8[] claims, $3 interval[] delays, $4 bool[] charged, $5 jsonb[] data,
-- $6 jsonb[] errors,
-- $7 text[] traceparents, $8 text[] reasons, $9 timestamptz[] finish_bys,
-- $10 text[] wake_ons, $11 bool attached, $12 bool put_off
-- odd: the delay is made of seconds: a day of an interval is longer or shorter when the session's
--   time zone changes its clocks.
-- odd: a trace that a worker began is written down, so that all later attempts are in it; NULL:
--   none of these.
-- odd: only what its handler asked for is a snooze, not what a worker that stops puts back; who
--   snoozes waits for the signal of $10 or for none. NULL: all are retries, none waits.
-- odd: $11: some are jobs of attached tables, whose rows are written as well; $12: later,
--   since their table is slow.
-- odd: what is no array in errors and history, somebody with a worker's login has written.
-- odd: a job whose cancelling was asked for is left alone: the caller finishes it as cancelled.
WITH settled AS (
    SELECT s.id, s.claim, s.delay, s.charged, s.data, s.error, s.traceparent, coalesce(s.reason, 'retry') AS reason, s.finish_by, s.wake_on
    FROM unnest($1::int8[], $2::int8[], $3::interval[], $4::bool[], $5::jsonb[], $6::jsonb[], $7::text[], $8::text[], $9::timestamptz[], $10::text[])
        AS s (id, claim, delay, charged, data, error, traceparent, reason, finish_by, wake_on)
),
requeued AS (
    UPDATE hybrid_runner.jobs AS j SET
        state = 'queued',
        run_at = clock_timestamp() + make_interval(secs => extract(epoch FROM s.delay)::float8), -- never behind a frontier
        finish_by = coalesce(j.finish_by, s.finish_by),
        attempt = j.attempt - CASE WHEN s.charged THEN 0 ELSE 1 END,
        snoozes = j.snoozes + CASE WHEN s.reason = 'snooze' THEN 1 ELSE 0 END,
        began_at = coalesce(j.began_at, j.started_at),
        waits_for = CASE WHEN s.reason = 'snooze' THEN s.wake_on ELSE j.waits_for END,
        data = coalesce(s.data, j.data),
        traceparent = coalesce(j.traceparent, s.traceparent),
        -- the last 20 errors are kept
        errors = CASE
            WHEN s.error IS NULL THEN j.errors
            WHEN jsonb_typeof(j.errors) <> 'array' THEN jsonb_build_array(j.errors, s.error)
            WHEN jsonb_array_length(j.errors) >= 20 THEN (j.errors - 0) || s.error
            ELSE coalesce(j.errors, '[]') || s.error
        END,
        history = CASE
            WHEN jsonb_typeof(j.history) <> 'array' THEN jsonb_build_array(j.history)
            WHEN jsonb_array_length(j.history) >= 20 THEN j.history - 0
            ELSE coalesce(j.history, '[]')
        END || jsonb_build_object(
            'what', s.reason, 'attempt', j.attempt, 'worker', j.worker_id, 'due', j.run_at, 'started', j.started_at,
            'ended', clock_timestamp()),
        claim = NULL,
        worker_id = NULL,
        started_at = NULL,
        version = j.version + 1
    FROM settled AS s
    WHERE j.id = ANY ($1) AND j.id = s.id AND j.claim = s.claim
        -- "IS NULL" so written that the planner expects all rows and not one, which it would join
        -- in loops.
        AND num_nulls(j.cancel_requested_at) <> 0
    RETURNING
        j.id, j.queue, j.run_at, j.source, j.row_key, j.attempt,
        CASE WHEN s.reason = 'snooze' THEN 'snoozed' ELSE 'queued' END AS became,
        CASE WHEN $11 AND s.error IS NOT NULL THEN j.errors::text END AS errors
),
rung AS (
    SELECT hybrid_runner.ring(r.queue, min(r.run_at), true) FROM requeued AS r GROUP BY r.queue, r.run_at > clock_timestamp()
),
written AS MATERIALIZED (
    SELECT w.job_id
    FROM (
        SELECT
            r.source, array_agg(r.id) AS ids, array_agg(r.row_key) AS keys, array_agg(r.became) AS states,
            array_agg(false) AS were_queued, array_agg(r.attempt::int4) AS retries,
            array_agg(r.errors) AS errors
        FROM requeued AS r
        WHERE $11 AND r.source IS NOT NULL
        GROUP BY r.source
    ) AS s
    CROSS JOIN LATERAL hybrid_runner.write_rows(
        s.source, s.ids, s.keys, s.states, s.were_queued, s.retries, NULL, NULL, NULL, NULL, s.errors, put_off => $12
    ) AS w
)
SELECT r.id
FROM requeued AS r
WHERE (SELECT count(*) FROM rung) IS NOT NULL AND (NOT $11 OR (SELECT count(*) FROM written) IS NOT NULL)
