-- beat: say that this worker lives; no row: others declared it dead, or another took its name.
-- $1 text worker_id, $2 int8 first_claim, $3 jsonb running_by_queue, $4 interval longest_gap
-- odd: one row of one table, and no other table is named: whatever is locked elsewhere, and
--   however much waits there, a worker that lives can say so.
-- odd: after a silence longer than $4 it cannot tell silence of others from its own, and judges
--   nobody for a lease.
-- odd: what lies in the future was written before the server's clock was set back.
UPDATE hybrid_runner.workers AS w SET
    heartbeat_at = clock_timestamp(),
    running = $3,
    unbroken_since = CASE
        WHEN w.heartbeat_at + $4 < clock_timestamp() THEN clock_timestamp()
        ELSE least(w.unbroken_since, clock_timestamp())
    END
WHERE w.id = $1 AND w.first_claim = $2 AND w.dead_at IS NULL
RETURNING w.id
