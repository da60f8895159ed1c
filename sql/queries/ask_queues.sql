-- ask_queues: of each queue whether a mute ran out, since when jobs wait that nobody took, and when
--   the next one is due; and how long it took to read the lanes: (what, queue, value).
-- $1 text[] queues, $2 interval lookback
-- odd: each `what` is a type of hybrid_runner/model/news.py, and docs/sql.md lists them.
-- odd: one index probe a lane. Jobs that were due for longer than $2 are left out: before them lie
--   the entries of all jobs that were claimed since vacuum last could clean up.
-- odd: the far future is left out, since infinity minus now is nothing that can be waited for.
-- odd: each bell that it reads is a lock, so the caller names no more than a few hundred queues.
WITH began AS MATERIALIZED (
    SELECT clock_timestamp() AS at
),
head AS MATERIALIZED (
    SELECT q.name, lane.priority, first.run_at
    FROM began AS b
    CROSS JOIN unnest($1::text[]) AS q (name)
    CROSS JOIN generate_series(0, 9) AS lane (priority)
    CROSS JOIN LATERAL (
        SELECT j.run_at
        FROM hybrid_runner.jobs AS j
        WHERE j.state = 'queued' AND j.queue = q.name AND j.priority = lane.priority
            AND j.run_at > b.at - $2::interval AND j.run_at < b.at + interval '3650 days'
        ORDER BY j.run_at
        LIMIT 1
    ) AS first
),
later AS MATERIALIZED (
    SELECT h.name, h.run_at FROM head AS h CROSS JOIN began AS b WHERE h.run_at > b.at
    UNION ALL
    SELECT h.name, next.run_at
    FROM began AS b
    CROSS JOIN head AS h
    CROSS JOIN LATERAL (
        SELECT j.run_at
        FROM hybrid_runner.jobs AS j
        WHERE j.state = 'queued' AND j.queue = h.name AND j.priority = h.priority
            AND j.run_at > b.at AND j.run_at < b.at + interval '3650 days'
        ORDER BY j.run_at
        LIMIT 1
    ) AS next
    WHERE h.run_at <= b.at
),
lanes AS MATERIALIZED (
    SELECT extract(epoch FROM clock_timestamp() - b.at) AS seconds
    FROM began AS b
    CROSS JOIN (SELECT count(*) FROM later) AS done
),
bells AS MATERIALIZED (
    SELECT q.name, extract(epoch FROM clock_timestamp()) * 1000 AS now, bell.until
    FROM hybrid_runner.queues AS q
    CROSS JOIN LATERAL (
        SELECT CASE
            WHEN EXISTS (SELECT FROM pg_class AS c WHERE c.oid = q.doorbell AND c.relkind = 'S')
                THEN pg_sequence_last_value(q.doorbell)
        END AS until
    ) AS bell
    WHERE q.name = ANY ($1)
)
SELECT 'mute_expired' AS what, b.name AS queue, '' AS value
FROM bells AS b
WHERE b.until > 0 AND b.until - b.now NOT BETWEEN 0 AND 60000
UNION ALL
SELECT 'jobs_overdue', h.name, extract(epoch FROM min(b.at) - min(h.run_at))::text
FROM began AS b
CROSS JOIN head AS h
JOIN hybrid_runner.queues AS q ON q.name = h.name AND q.paused_at IS NULL
WHERE h.run_at <= b.at - interval '1 second'
GROUP BY h.name
UNION ALL
SELECT 'next_due', l.name, extract(epoch FROM min(l.run_at) - clock_timestamp())::text
FROM later AS l
GROUP BY l.name
UNION ALL
SELECT 'lanes_read', '', l.seconds::text FROM lanes AS l
