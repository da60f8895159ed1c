-- claim_jobs: take due jobs of one queue, urgent lanes first, oldest first within a lane.
-- $1 text queue, $2 text[] kinds, $3 int8 slots, $4 text worker_id, $5 int4[] max_attempts, $6 interval[] timeouts
-- odd: the lanes are walked in order by a nested loop that stops at $3, so nothing is locked past the limit.
WITH picked AS MATERIALIZED (
    SELECT due.id
    FROM generate_series(0, 9) AS lane (priority)
    CROSS JOIN LATERAL (
        SELECT j.id
        FROM hybrid_runner.jobs AS j
        WHERE j.state = 'queued' AND j.queue = $1 AND j.priority = lane.priority AND j.run_at <= now() AND j.kind = ANY ($2)
        ORDER BY j.run_at, j.id
        LIMIT $3
        FOR UPDATE OF j SKIP LOCKED
    ) AS due
    WHERE NOT EXISTS (SELECT FROM hybrid_runner.queues AS q WHERE q.name = $1 AND q.paused_at IS NOT NULL)
    LIMIT $3
),
claimed AS (
    UPDATE hybrid_runner.jobs AS j SET
        state = 'running',
        attempt = j.attempt + 1,
        claim = (SELECT nextval('hybrid_runner.claims')), -- once a batch: with the id it is unique
        worker_id = $4,
        started_at = clock_timestamp(),
        version = j.version + 1,
        -- what the handler declares is written down, so that others can apply it without knowing the kind
        max_attempts = coalesce(j.max_attempts, ($5::int4[])[array_position($2, j.kind)]),
        timeout = coalesce(j.timeout, ($6::interval[])[array_position($2, j.kind)])
    WHERE j.id = ANY (ARRAY(SELECT id FROM picked))
    RETURNING
        j.id, j.queue, j.kind, j.priority, j.payload, j.data, j.key, j.run_at, j.max_attempts, j.timeout, j.finish_by,
        j.traceparent, j.attempt, j.claim, j.started_at
)
SELECT
    id, queue, kind, payload, data, key, run_at, max_attempts, timeout, finish_by, traceparent, attempt, claim, started_at
FROM claimed
ORDER BY priority, run_at, id
