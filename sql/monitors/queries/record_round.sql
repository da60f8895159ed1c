-- record_round: store what a round has found, all of it or nothing; no row: its claim is stale.
-- $1 text host, $2 int8 job_id, $3 int8 claim, $4 text round, $5 int8[] latency_services,
-- $6 text[] latency_names, $7 int4[] latencies, $8 bool last, $9 int8[] same_ids,
-- $10 timestamptz[] same_dues, $11 timestamptz[] same_polls, $12 int4[] same_latencies,
-- $13 int8[] told_services, $14 int8[] told_dependencies, $15 int4[] told_latencies
SELECT r.next_due, r.event_ids, r.status_changes, r.version
FROM hybrid_monitors.record_round(
    $1, $2, $3, $4::text::jsonb, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15
) AS r
