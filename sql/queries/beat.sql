-- beat: say that this worker lives; returns what it may have missed, and what it should do:
--   (what, queue, value).
-- $1 text worker_id, $2 int8[] running, $3 text[] queues, $4 int8 first_claim,
-- $5 text proof_channel, $6 interval timeout_grace,
-- $7 jsonb running_by_queue, $8 int8[] claims, $9 text[] duties
-- odd: each `what` is a type of hybrid_runner/model/news.py, and docs/sql.md lists them; `queue`
--   and `value` are '' where they say nothing.
-- odd: $2 and $8 are the attempts that run here, as ids and claims. The archive is not asked: a
--   heartbeat waits for no partition.
WITH alive AS (
    UPDATE hybrid_runner.workers SET
        heartbeat_at = clock_timestamp(),
        running = $7,
        -- By the shortest lease of all: a worker that was silent for half of it cannot tell
        -- whether others were silent, or itself unable to hear.
        unbroken_since = CASE
            WHEN heartbeat_at + (SELECT min(w.lease) FROM hybrid_runner.workers AS w WHERE w.dead_at IS NULL) / 2 < clock_timestamp()
            THEN clock_timestamp()
            ELSE unbroken_since
        END
    WHERE id = $1 AND first_claim = $4 AND dead_at IS NULL
    RETURNING id, unbroken_since
),
others AS MATERIALIZED (
    -- Nobody could be heard while the server was down, or while this worker was silent itself.
    SELECT
        w.id, w.rescued_at,
        coalesce(w.dead_at, greatest(w.heartbeat_at, pg_postmaster_start_time(), a.unbroken_since) + w.lease) AS dead_from
    FROM hybrid_runner.workers AS w
    CROSS JOIN alive AS a
    WHERE w.id <> $1
),
expired AS MATERIALIZED (
    -- Two heartbeats may come at the same moment: one of them has it for the next ten seconds.
    SELECT w.id
    FROM hybrid_runner.workers AS w
    WHERE w.id IN (
        SELECT o.id FROM others AS o
        WHERE o.dead_from < clock_timestamp() AND (o.rescued_at IS NULL OR o.rescued_at < clock_timestamp() - interval '10 seconds')
    )
        -- Asked once more of the row itself: another heartbeat may have declared it dead since
        -- this snapshot.
        AND (w.rescued_at IS NULL OR w.rescued_at < clock_timestamp() - interval '10 seconds')
        -- and it may have spoken, or have been taken over by a new process
        AND (w.dead_at IS NOT NULL OR w.heartbeat_at + w.lease < clock_timestamp())
    FOR UPDATE OF w SKIP LOCKED
),
declared AS (
    UPDATE hybrid_runner.workers AS w SET dead_at = coalesce(w.dead_at, clock_timestamp()), rescued_at = clock_timestamp()
    WHERE w.id IN (SELECT l.id FROM expired AS l)
    RETURNING w.id
),
taken AS (
    UPDATE hybrid_runner.duties AS c SET taken_at = clock_timestamp(), holder = $1 || ' ' || $4::text
    WHERE c.name IN (
        SELECT due.name FROM hybrid_runner.duties AS due
        WHERE due.name = ANY ($9) AND due.taken_at + due.every < clock_timestamp() AND EXISTS (SELECT FROM alive)
        FOR UPDATE SKIP LOCKED
    )
    RETURNING c.name
),
mine AS MATERIALIZED (
    SELECT
        j.id, j.claim, j.queue, j.cancel_requested_at IS NOT NULL AS is_cancelled,
        j.started_at + j.timeout + $6 < clock_timestamp() AS is_hung
    FROM hybrid_runner.jobs AS j
    WHERE j.id = ANY ($2) AND j.state = 'running' AND j.worker_id = $1
)
SELECT 'declared_dead' AS what, '' AS queue, '' AS value WHERE NOT EXISTS (SELECT FROM alive)
UNION ALL
SELECT 'worker_died', '', d.id FROM declared AS d
UNION ALL
SELECT 'worker_silent', '', extract(epoch FROM min(o.dead_from) - clock_timestamp())::text FROM others AS o WHERE o.rescued_at IS NULL
HAVING count(*) > 0
UNION ALL
SELECT 'duty_given', '', t.name FROM taken AS t
UNION ALL
SELECT 'ends_unreported', '', ''
WHERE EXISTS (
    SELECT FROM hybrid_runner.unreported_ends AS e
    WHERE e.taken_at IS NULL OR e.taken_at < clock_timestamp() - interval '1 minute' -- as take_unreported_ends.sql has it
)
UNION ALL
SELECT 'proof_sent', pg_notify($5, '')::text, $5 WHERE $5 IS NOT NULL
UNION ALL
SELECT CASE WHEN m.is_cancelled THEN 'cancel_requested' ELSE 'job_hung' END, m.queue, m.id::text
FROM mine AS m
WHERE m.is_cancelled OR m.is_hung
UNION ALL
SELECT 'row_gone', '', r.id || ' ' || r.claim
FROM unnest($2::int8[], $8::int8[]) AS r (id, claim)
WHERE EXISTS (SELECT FROM alive) AND NOT EXISTS (SELECT FROM mine AS m WHERE m.id = r.id AND m.claim = r.claim)
UNION ALL
SELECT 'queue_member', q.name, w.kinds_hash || ' ' || w.id
FROM hybrid_runner.workers AS w
JOIN unnest($3::text[]) AS q (name) ON w.queues ? q.name
WHERE w.heartbeat_at + w.lease > clock_timestamp() AND w.dead_at IS NULL
UNION ALL
SELECT 'mute_expired', q.name, ''
FROM hybrid_runner.queues AS q
WHERE q.name = ANY ($3) AND pg_relation_filenode(q.doorbell) IS NOT NULL
    AND pg_sequence_last_value(q.doorbell) > 0
    AND pg_sequence_last_value(q.doorbell) - extract(epoch FROM clock_timestamp()) * 1000 NOT BETWEEN 0 AND 60000
UNION ALL
SELECT 'jobs_overdue', q.name, ''
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
SELECT 'next_due', q.name, extract(epoch FROM min(later.run_at) - clock_timestamp())::text
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
