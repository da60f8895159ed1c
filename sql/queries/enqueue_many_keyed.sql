-- enqueue_many_keyed: store many jobs of which some have keys; says of each, in order, what
--   became of it.
-- $1 text[] kinds, $2 text[] payloads, $3 text[] queues, $4 int4[] priorities,
-- $5 timestamptz[] run_ats,
-- $6 text[] traceparents, $7 int4[] max_attempts, $8 interval[] timeouts,
-- $9 timestamptz[] finish_bys, $10 text[] data,
-- $11 interval[] delays, $12 int4[] max_snoozes, $13 interval[] max_durations,
-- $14 interval[] finish_withins, $15 timestamptz[] start_bys, $16 text[] keys,
-- $17 text on_conflict, $18 interval max_wait, $19 interval unique_for, $20 int4 max_items
-- odd: what no job says is one NULL in place of its array.
-- odd: delays are made of seconds: a day of an interval is longer or shorter when the session's
--   time zone changes its clocks.
-- odd: keys are taken in their own order, so that two such statements cannot wait for each other;
--   a microsecond for each place makes the jobs due in the order in which they were given.
WITH n AS MATERIALIZED (
    SELECT given.*, start.moment + given.place::float8 * interval '1 microsecond' AS due
    FROM ROWS FROM (
        pg_catalog.unnest($1::text[]), pg_catalog.unnest($2::text[]), pg_catalog.unnest($3::text[]),
        pg_catalog.unnest($4::int4[]), pg_catalog.unnest($5::timestamptz[]), pg_catalog.unnest($6::text[]),
        pg_catalog.unnest($7::int4[]), pg_catalog.unnest($8::interval[]), pg_catalog.unnest($9::timestamptz[]),
        pg_catalog.unnest($10::text[]), pg_catalog.unnest($11::interval[]), pg_catalog.unnest($12::int4[]),
        pg_catalog.unnest($13::interval[]), pg_catalog.unnest($14::interval[]), pg_catalog.unnest($15::timestamptz[]),
        pg_catalog.unnest($16::text[])
    ) WITH ORDINALITY
        AS given (kind, payload, queue, priority, run_at, traceparent, max_attempts, timeout, finish_by, data, delay, max_snoozes, max_duration, finish_within, start_by, key, place)
    CROSS JOIN (SELECT pg_catalog.clock_timestamp()) AS start (moment)
    ORDER BY given.key COLLATE "C", given.place
)
SELECT e.id, e.outcome
FROM n
CROSS JOIN LATERAL hybrid_runner.enqueue_job(
    n.kind, n.payload::jsonb, n.queue, n.key, n.priority, coalesce(n.run_at, n.due + coalesce(pg_catalog.make_interval(secs => extract(epoch FROM n.delay)::float8), interval '0')), NULL, n.max_attempts, n.timeout,
    n.finish_by, n.data::jsonb, n.traceparent, $17, n.max_snoozes, n.max_duration, n.finish_within, n.start_by, $18, $19, $20
) AS e
ORDER BY n.place
