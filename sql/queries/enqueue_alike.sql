-- enqueue_alike: store many jobs that have no keys and differ in their payloads only; returns
--   their ids in order.
-- $1 text kind, $2 text[] payloads, $3 text queue, $4 int4 priority, $5 timestamptz run_at,
-- $6 text traceparent,
-- $7 int4 max_attempts, $8 interval timeout, $9 timestamptz finish_by, $10 text data,
-- $11 interval delay, $12 int4 max_snoozes, $13 interval max_duration, $14 interval finish_within,
-- $15 timestamptz start_by
-- odd: the delay is made of seconds: a day of an interval is longer or shorter when the session's
--   time zone changes its clocks.
-- odd: text[] is unnested and cast row by row: text[]::jsonb[] takes five times as long.
INSERT INTO hybrid_runner.jobs (kind, payload, queue, priority, run_at, traceparent, max_attempts, timeout, finish_by, data, max_snoozes, max_duration, finish_within, start_by)
SELECT
    $1::text, n.payload::jsonb, $3::text, $4::int4, coalesce($5::timestamptz, pg_catalog.clock_timestamp() + wait.delay),
    coalesce($6::text, nullif(pg_catalog.current_setting('hybrid_runner.traceparent', true), '')), $7::int4, $8::interval, $9::timestamptz, $10::text::jsonb,
    $12::int4, $13::interval, $14::interval, $15::timestamptz
FROM pg_catalog.unnest($2::text[]) AS n (payload)
CROSS JOIN (SELECT coalesce(pg_catalog.make_interval(secs => extract(epoch FROM $11::interval)::float8), interval '0')) AS wait (delay)
RETURNING id
