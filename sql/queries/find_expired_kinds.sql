-- find_expired_kinds: kinds of jobs that wait and may have a limit of time, and that no live worker
--   knows, by name, from behind one on.
-- $1 int8 most, $2 text behind
-- odd: one row of the index is read for each kind, whatever waits; whoever may insert can make up
--   kinds without end.
WITH RECURSIVE waiting (kind) AS (
    (
        SELECT j.kind FROM hybrid_runner.jobs AS j
        WHERE j.state = 'queued' AND (j.began_at IS NOT NULL OR j.finish_by IS NOT NULL OR j.finish_within IS NOT NULL)
            AND j.kind > $2
        ORDER BY j.kind
        LIMIT 1
    )
    UNION ALL
    SELECT (
        SELECT j.kind FROM hybrid_runner.jobs AS j
        WHERE j.state = 'queued' AND (j.began_at IS NOT NULL OR j.finish_by IS NOT NULL OR j.finish_within IS NOT NULL)
            AND j.kind > w.kind
        ORDER BY j.kind
        LIMIT 1
    )
    FROM waiting AS w
    WHERE w.kind IS NOT NULL
),
known AS MATERIALIZED (
    SELECT DISTINCT n.name
    FROM hybrid_runner.workers AS w
    CROSS JOIN LATERAL unnest(w.kinds) AS n (name)
    WHERE w.dead_at IS NULL AND w.heartbeat_at + w.lease > clock_timestamp()
)
SELECT w.kind
FROM (SELECT waiting.kind FROM waiting LIMIT 10000) AS w
WHERE w.kind IS NOT NULL AND w.kind NOT IN (SELECT n.name FROM known AS n)
LIMIT $1
