-- record_round: store what a round has found, all of it or nothing; no row: its claim is stale.
-- $1 text host, $2 int8 job_id, $3 int8 claim, $4 text round, $5 int8[] latency_services,
-- $6 text[] latency_names, $7 int4[] latencies, $8 bool last, $9 text same_ids,
-- $10 timestamptz[] same_dues, $11 timestamptz[] same_polls, $12 text same_latencies,
-- $13 text told_services, $14 text told_dependencies, $15 text told_latencies
-- odd: arrays of many numbers come as text, which costs the worker a quarter.
SELECT r.next_due, r.event_ids, r.status_changes, r.version
FROM hybrid_monitors.record_round(
    $1, $2, $3, $4::text::jsonb, $5, $6, $7, $8, $9::text::int8[], $10, $11, $12::text::int4[],
    $13::text::int8[], $14::text::int8[], $15::text::int4[]
) AS r
