-- list_schedules: schedules by name, each with what keeps it from firing or its jobs from running.
-- $1 text name, $2 int8 most, $3 int8 offset
-- odd: without a name it is all of them, and their payloads, which may be large, stay behind.
WITH living AS MATERIALIZED (
    SELECT w.schedules, w.kinds, w.queues
    FROM hybrid_runner.workers AS w
    WHERE w.dead_at IS NULL AND w.heartbeat_at + w.lease > clock_timestamp()
)
SELECT
    s.name,
    CASE
        WHEN s.next_at IS NULL AND s.waiting_ticks IS NULL THEN 'never'
        WHEN s.paused_at IS NOT NULL THEN 'paused'
        WHEN s.declared AND l.declaring = 0 THEN 'undeclared'
        WHEN l.knowing = 0 THEN 'unknown kind'
        WHEN s.next_at < clock_timestamp() - interval '1 minute' THEN 'overdue'
        ELSE 'on'
    END AS state,
    s.kind, s.queue, s.cron, s.every, s.at, s.timezone, s.next_at, s.last_tick, s.last_job, coalesce(cardinality(s.waiting_ticks), 0) AS waiting, s.overlap, s.missed,
    s.catch_up, s.jitter, s.starts_at, s.ends_at, s.paused_at, s.note, s.declared, l.declaring AS workers, s.made_by,
    s.fired, s.caught_up, s.skipped, s.dropped, s.priority, s.max_attempts, s.timeout,
    CASE WHEN $1::text IS NOT NULL THEN s.payload::text END AS payload
FROM (
    -- what is skipped is not asked about
    SELECT o.* FROM hybrid_runner.schedules AS o WHERE $1::text IS NULL OR o.name = $1 ORDER BY o.name LIMIT $2 OFFSET $3
) AS s
LEFT JOIN hybrid_runner.kinds AS k ON k.name = s.kind
CROSS JOIN LATERAL (
    SELECT
        count(*) FILTER (WHERE s.name = ANY (w.schedules))::int4 AS declaring,
        count(*) FILTER (
            WHERE s.kind = ANY (w.kinds) AND jsonb_exists(w.queues, coalesce(s.queue, k.queue, 'default'))
        )::int4 AS knowing
    FROM living AS w
) AS l
ORDER BY s.name
