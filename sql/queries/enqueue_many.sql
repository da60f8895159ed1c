-- enqueue_many: store many jobs without keys in one statement; returns their ids in order.
-- $1 text[] kinds, $2 text[] payloads, $3 text[] queues, $4 int4[] priorities,
-- $5 timestamptz[] run_ats,
-- $6 text[] traceparents, $7 int4[] max_attempts, $8 interval[] timeouts,
-- $9 timestamptz[] finish_bys, $10 text[] data,
-- $11 interval[] delays, $12 int4[] max_snoozes, $13 interval[] max_durations,
-- $14 interval[] finish_withins, $15 timestamptz[] start_bys
-- odd: what no job says is one NULL in place of its array.
-- odd: delays are made of seconds: a day of an interval is longer or shorter when the session's
--   time zone changes its clocks.
INSERT INTO hybrid_runner.jobs (kind, payload, queue, priority, run_at, traceparent, max_attempts, timeout, finish_by, data, max_snoozes, max_duration, finish_within, start_by)
SELECT
    n.kind, n.payload::jsonb, n.queue, n.priority, coalesce(n.run_at, pg_catalog.clock_timestamp() + coalesce(pg_catalog.make_interval(secs => extract(epoch FROM n.delay)::float8), interval '0')),
    coalesce(n.traceparent, nullif(pg_catalog.current_setting('hybrid_runner.traceparent', true), '')), n.max_attempts, n.timeout, n.finish_by, n.data::jsonb,
    n.max_snoozes, n.max_duration, n.finish_within, n.start_by
FROM ROWS FROM (
    pg_catalog.unnest($1::text[]), pg_catalog.unnest($2::text[]), pg_catalog.unnest($3::text[]),
    pg_catalog.unnest($4::int4[]), pg_catalog.unnest($5::timestamptz[]), pg_catalog.unnest($6::text[]),
    pg_catalog.unnest($7::int4[]), pg_catalog.unnest($8::interval[]), pg_catalog.unnest($9::timestamptz[]),
    pg_catalog.unnest($10::text[]), pg_catalog.unnest($11::interval[]), pg_catalog.unnest($12::int4[]),
    pg_catalog.unnest($13::interval[]), pg_catalog.unnest($14::interval[]), pg_catalog.unnest($15::timestamptz[])
) AS n (kind, payload, queue, priority, run_at, traceparent, max_attempts, timeout, finish_by, data, delay, max_snoozes, max_duration, finish_within, start_by)
RETURNING id
