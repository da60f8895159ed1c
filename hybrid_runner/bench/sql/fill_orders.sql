-- fill_orders: many rows that are wanted.
-- $1 int8 rows
INSERT INTO hybrid_runner_bench.orders (status) SELECT 'pending' FROM generate_series(1, $1)
