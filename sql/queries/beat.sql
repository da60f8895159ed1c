-- beat: this worker lives; returns what it may not have heard: (what, queue, value).
-- $1 text worker_id, $2 int8[] running, $3 text[] queues
-- odd: `what` is 'cancel' (a running job's id), 'member' (a live worker of the queue), 'expired' (a mute ran out: its owner died)
-- odd: or 'overdue' (a job has been due for a second, and nobody took it) or 'due' (seconds until the next job is).
WITH alive AS (
    UPDATE hybrid_runner.workers SET heartbeat_at = clock_timestamp() WHERE id = $1 RETURNING id
)
SELECT 'cancel' AS what, j.queue, j.id::text AS value
FROM hybrid_runner.jobs AS j
WHERE j.id = ANY ($2) AND j.state = 'running' AND j.worker_id = $1 AND j.cancel_requested_at IS NOT NULL
UNION ALL
SELECT 'member', q.name, w.id
FROM hybrid_runner.workers AS w
JOIN unnest($3::text[]) AS q (name) ON w.queues ? q.name
WHERE w.heartbeat_at + w.lease > clock_timestamp()
UNION ALL
SELECT 'expired', q.name, NULL
FROM hybrid_runner.queues AS q
WHERE q.name = ANY ($3) AND pg_relation_filenode(q.bell) IS NOT NULL
    AND pg_sequence_last_value(q.bell) BETWEEN 1 AND extract(epoch FROM clock_timestamp()) * 1000
UNION ALL
SELECT 'overdue', q.name, NULL
FROM hybrid_runner.queues AS q
WHERE q.name = ANY ($3) AND q.paused_at IS NULL AND EXISTS (
    SELECT FROM generate_series(0, 9) AS lane (priority)
    CROSS JOIN LATERAL (
        SELECT FROM hybrid_runner.jobs AS j
        WHERE j.state = 'queued' AND j.queue = q.name AND j.priority = lane.priority AND j.run_at <= now() - interval '1 second'
        LIMIT 1
    ) AS due
)
UNION ALL
SELECT 'due', q.name, extract(epoch FROM min(later.run_at) - clock_timestamp())::text
FROM unnest($3::text[]) AS q (name)
CROSS JOIN generate_series(0, 9) AS lane (priority)
CROSS JOIN LATERAL (
    SELECT j.run_at
    FROM hybrid_runner.jobs AS j
    WHERE j.state = 'queued' AND j.queue = q.name AND j.priority = lane.priority
        AND j.run_at > now() AND j.run_at < now() + interval '3650 days'
    ORDER BY j.run_at
    LIMIT 1
) AS later
GROUP BY q.name
