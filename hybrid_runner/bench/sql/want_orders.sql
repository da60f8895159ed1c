-- want_orders: some rows whose work has ended are wanted again; says how many.
-- $1 int8[] held, $2 int8 most
WITH ended AS (
    SELECT o.id
    FROM hybrid_runner_bench.orders AS o
    WHERE o.status = 'completed' AND o.id <> ALL ($1)
    LIMIT $2
    FOR UPDATE SKIP LOCKED
),
wanted AS (
    UPDATE hybrid_runner_bench.orders AS o SET status = 'pending'
    WHERE o.id = ANY (ARRAY(SELECT id FROM ended))
    RETURNING o.id
)
SELECT count(*) FROM wanted
