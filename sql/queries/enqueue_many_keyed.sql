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
SELECT e.id, e.outcome
FROM hybrid_runner.enqueue_jobs($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20) AS e
ORDER BY e.place
