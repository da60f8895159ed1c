-- enqueue_many_keyed: store many jobs of which some have keys; says of each, in order, what
--   became of it.
-- $1 text[] kinds, $2 text[] payloads, $3 text[] queues, $4 int4[] priorities,
-- $5 timestamptz[] run_ats,
-- $6 text[] traceparents, $7 int4[] max_attempts, $8 interval[] timeouts,
-- $9 timestamptz[] finish_bys, $10 text[] data,
-- $11 interval[] delays, $12 text[] keys, $13 text on_conflict
SELECT e.id, e.outcome
FROM ROWS FROM (
    pg_catalog.unnest($1::text[]), pg_catalog.unnest($2::text[]), pg_catalog.unnest($3::text[]),
    pg_catalog.unnest($4::int4[]), pg_catalog.unnest($5::timestamptz[]), pg_catalog.unnest($6::text[]),
    pg_catalog.unnest($7::int4[]), pg_catalog.unnest($8::interval[]), pg_catalog.unnest($9::timestamptz[]),
    pg_catalog.unnest($10::text[]), pg_catalog.unnest($11::interval[]), pg_catalog.unnest($12::text[])
) WITH ORDINALITY
    AS n (kind, payload, queue, priority, run_at, traceparent, max_attempts, timeout, finish_by, data, delay, key, place)
CROSS JOIN LATERAL hybrid_runner.enqueue_job(
    n.kind, n.payload::jsonb, n.queue, n.key, n.priority, n.run_at, n.delay, n.max_attempts, n.timeout, n.finish_by, n.data::jsonb, n.traceparent, $13
) AS e
ORDER BY n.place
