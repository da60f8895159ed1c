-- bare_claim: take due jobs of one queue, oldest first.
-- $1 text queue, $2 int8 most
WITH picked AS MATERIALIZED (
    SELECT j.id
    FROM hybrid_runner.jobs AS j
    WHERE j.state = 'queued' AND j.queue = $1 AND j.priority = 5 AND j.run_at <= now()
    ORDER BY j.run_at, j.id
    LIMIT $2
    FOR UPDATE SKIP LOCKED
)
UPDATE hybrid_runner.jobs AS j SET state = 'running', attempt = j.attempt + 1, started_at = clock_timestamp()
WHERE j.id = ANY (ARRAY(SELECT id FROM picked))
RETURNING j.id, j.kind, j.payload
