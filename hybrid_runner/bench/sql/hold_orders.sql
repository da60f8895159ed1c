-- hold_orders: an application has some rows open, and has changed nothing yet.
-- $1 int8 rows
SELECT o.id FROM hybrid_runner_bench.orders AS o ORDER BY o.id LIMIT $1 FOR UPDATE
