-- enqueue_job: store one job and say what became of its key: inserted, exists, replaced,
--   follows or collected.
-- $1 text kind, $2 text payload, $3 text queue, $4 text key, $5 int4 priority,
-- $6 timestamptz run_at, $7 interval delay,
-- $8 int4 max_attempts, $9 interval timeout, $10 timestamptz finish_by, $11 text data,
-- $12 text traceparent,
-- $13 text on_conflict, $14 int4 max_snoozes, $15 interval max_duration,
-- $16 interval finish_within, $17 timestamptz start_by, $18 interval max_wait,
-- $19 interval unique_for, $20 int4 max_items
SELECT id, outcome FROM hybrid_runner.enqueue_job($1, $2::text::jsonb, $3, $4, $5, $6, $7, $8, $9, $10, $11::text::jsonb, $12, $13, $14, $15, $16, $17, $18, $19, $20)
