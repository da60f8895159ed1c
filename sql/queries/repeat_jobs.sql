-- repeat_jobs: put claimed jobs back for their next run, as if they were new, and store the jobs
--   that follow the run that ended; returns the ids put back, a stale claim moves nothing.
-- $1 int8[] ids, $2 int8[] claims, $3 interval[] delays, $4 jsonb[] data,
-- $5 timestamptz[] finish_bys, $6 text[] follow_ups, $7 text[] traceparents,
-- $8 bool attached, $9 bool put_off, $10 text[] wake_ons
-- odd: each run has a trace of its own; NULL: nobody traces these.
-- odd: the next run waits for the signal of $10 or for none. NULL: none of them waits.
-- odd: follow_ups as end_jobs() takes them; NULL: none.
-- odd: the delay is made of seconds: a day of an interval is longer or shorter when the session's
--   time zone changes its clocks.
-- odd: a job whose cancelling was asked for is left alone: the caller finishes it as cancelled.
WITH settled AS (
    SELECT s.id, s.claim, s.delay, s.data, s.finish_by, s.traceparent, s.wake_on
    FROM unnest($1::int8[], $2::int8[], $3::interval[], $4::jsonb[], $5::timestamptz[], $7::text[], $10::text[])
        AS s (id, claim, delay, data, finish_by, traceparent, wake_on)
),
repeated AS (
    UPDATE hybrid_runner.jobs AS j SET
        state = 'queued',
        run_at = clock_timestamp() + make_interval(secs => extract(epoch FROM s.delay)::float8), -- never behind a frontier
        finish_by = s.finish_by,
        start_by = NULL, -- it has begun
        attempt = 0,
        snoozes = 0,
        began_at = NULL,
        waits_for = s.wake_on,
        data = coalesce(s.data, j.data),
        traceparent = coalesce(s.traceparent, j.traceparent),
        progress = NULL,
        errors = NULL,
        history = NULL,
        claim = NULL,
        worker_id = NULL,
        started_at = NULL,
        version = j.version + 1
    FROM settled AS s
    WHERE j.id = ANY ($1) AND j.id = s.id AND j.claim = s.claim
        -- as requeue_jobs.sql has it
        AND num_nulls(j.cancel_requested_at) <> 0
    RETURNING
        j.id, j.queue, j.run_at, s.claim, j.source, j.row_key, j.attempt, 'queued' AS became,
        NULL::text AS errors
),
rung AS (
    SELECT hybrid_runner.ring(r.queue, min(r.run_at), true) FROM repeated AS r GROUP BY r.queue, r.run_at > clock_timestamp()
),
made AS MATERIALIZED (
    SELECT m.id
    FROM hybrid_runner.store_follow_ups(
        ARRAY(
            SELECT f.job::jsonb
            FROM unnest($6::text[]) WITH ORDINALITY AS f (job, place)
            JOIN repeated AS r ON r.id = (f.job::jsonb ->> 'follows')::int8 AND r.claim = (f.job::jsonb ->> 'claim')::int8
            ORDER BY f.place
        )
    ) AS m
    WHERE $6 IS NOT NULL
),
written AS MATERIALIZED (
    SELECT w.job_id
    FROM (
        SELECT
            r.source, array_agg(r.id) AS ids, array_agg(r.row_key) AS keys, array_agg(r.became) AS states,
            array_agg(false) AS were_queued, array_agg(r.attempt::int4) AS retries,
            array_agg(r.errors) AS errors
        FROM repeated AS r
        WHERE $8 AND r.source IS NOT NULL
        GROUP BY r.source
    ) AS s
    CROSS JOIN LATERAL hybrid_runner.write_rows(
        s.source, s.ids, s.keys, s.states, s.were_queued, s.retries, NULL, NULL, NULL, NULL, s.errors, put_off => $9
    ) AS w
)
SELECT r.id
FROM repeated AS r
WHERE (SELECT count(*) FROM rung) IS NOT NULL AND (SELECT count(*) FROM made) IS NOT NULL
    AND (NOT $8 OR (SELECT count(*) FROM written) IS NOT NULL)
