-- ask_news: what a worker may have missed, what it should do, and who else lives:
--   (what, queue, value).
-- $1 text worker_id, $2 int8 first_claim, $3 int8[] running, $4 int8[] claims,
-- $5 interval timeout_grace, $6 text[] duties, $7 interval shortest_lease
-- odd: each `what` is a type of hybrid_runner/model/news.py, and docs/sql.md lists them; `queue`
--   and `value` are '' where they say nothing.
-- odd: $3 and $4 are the attempts that run here, as ids and claims. The archive is not asked: a
--   heartbeat waits for no partition.
-- odd: $7 is the shortest lease that this worker's heartbeats have been measured by; it is no judge
--   of workers with shorter ones.
-- odd: a time is compared with two bounds where one would do: what lies in the future was written
--   before the server's clock was set back, and says nothing. The second is for clocks that differ
--   from core to core.
WITH alive AS MATERIALIZED (
    -- Nobody could be heard while the server was down, or while this worker was silent itself.
    SELECT
        greatest(
            w.unbroken_since,
            CASE WHEN pg_postmaster_start_time() < clock_timestamp() THEN pg_postmaster_start_time() END
        ) AS listening_since
    FROM hybrid_runner.workers AS w
    WHERE w.id = $1 AND w.first_claim = $2 AND w.dead_at IS NULL
),
noticed AS MATERIALIZED (
    -- A row that somebody holds is left alone: the worker may be waiting to write its heartbeat
    -- there. And two heartbeats may come at the same moment: one of them has it.
    SELECT
        w.id,
        CASE
            WHEN w.dead_at IS NOT NULL THEN 'dead'
            WHEN w.heartbeat_at > clock_timestamp() + interval '1 second' THEN 'ahead'
            WHEN w.suspected_at BETWEEN greatest(w.heartbeat_at, clock_timestamp() - 1.5 * w.lease) AND clock_timestamp()
                THEN 'dead'
            ELSE 'suspected'
        END AS state
    FROM hybrid_runner.workers AS w
    CROSS JOIN alive AS a
    WHERE w.id <> $1 AND CASE
        -- It was declared: one rescues, and if that one dies over it, another ten seconds later.
        WHEN w.dead_at IS NOT NULL
            THEN w.rescued_at IS NULL
                OR w.rescued_at NOT BETWEEN clock_timestamp() - interval '10 seconds' AND clock_timestamp() + interval '1 second'
        WHEN w.heartbeat_at > clock_timestamp() + interval '1 second' THEN true
        -- First it is suspected, which shows that its row could be written; then it has a quarter
        -- of its lease to speak.
        WHEN w.suspected_at BETWEEN greatest(w.heartbeat_at, clock_timestamp() - 1.5 * w.lease) AND clock_timestamp()
            THEN w.suspected_at <= clock_timestamp() - w.lease / 4 AND w.lease >= $7
                AND greatest(w.heartbeat_at, a.listening_since) + w.lease <= clock_timestamp()
        ELSE w.heartbeat_at + w.lease * 2 / 3 <= clock_timestamp()
    END
    FOR UPDATE OF w SKIP LOCKED
),
written AS (
    UPDATE hybrid_runner.workers AS w SET
        heartbeat_at = CASE WHEN n.state = 'ahead' THEN clock_timestamp() ELSE w.heartbeat_at END,
        suspected_at = CASE WHEN n.state = 'suspected' THEN clock_timestamp() ELSE w.suspected_at END,
        dead_at = CASE WHEN n.state = 'dead' THEN coalesce(w.dead_at, clock_timestamp()) ELSE w.dead_at END,
        rescued_at = CASE WHEN n.state = 'dead' THEN clock_timestamp() ELSE w.rescued_at END
    FROM noticed AS n
    WHERE w.id = n.id
    RETURNING w.id, n.state
),
others AS MATERIALIZED (
    SELECT
        w.lease,
        extract(epoch FROM CASE
            WHEN n.state = 'suspected' OR w.suspected_at BETWEEN greatest(w.heartbeat_at, clock_timestamp() - 1.5 * w.lease) AND clock_timestamp()
                THEN greatest(
                    greatest(w.heartbeat_at, a.listening_since) + w.lease,
                    coalesce(CASE WHEN n.state IS NULL THEN w.suspected_at END, clock_timestamp()) + w.lease / 4)
            ELSE w.heartbeat_at + w.lease * 2 / 3
        END - clock_timestamp()) AS seconds
    FROM hybrid_runner.workers AS w
    CROSS JOIN alive AS a
    LEFT JOIN noticed AS n ON n.id = w.id
    WHERE w.id <> $1 AND w.dead_at IS NULL AND (n.state IS NULL OR n.state = 'suspected')
),
taken AS (
    UPDATE hybrid_runner.duties AS d SET taken_at = clock_timestamp(), holder = $1 || ' ' || $2::text
    WHERE d.name IN (
        SELECT due.name
        FROM hybrid_runner.duties AS due
        WHERE due.name = ANY ($6) AND EXISTS (SELECT FROM alive)
            AND due.taken_at NOT BETWEEN clock_timestamp() - due.every AND clock_timestamp() + interval '1 second'
        FOR UPDATE SKIP LOCKED
    )
    RETURNING d.name
),
mine AS MATERIALIZED (
    SELECT
        j.id, j.claim, j.cancel_requested_at IS NOT NULL AS is_cancelled,
        CASE WHEN isfinite(j.started_at) THEN clock_timestamp() - j.started_at > j.timeout + $5 ELSE false END AS is_hung
    FROM hybrid_runner.jobs AS j
    WHERE j.id = ANY ($3) AND j.state = 'running' AND j.worker_id = $1
)
SELECT 'worker_died' AS what, '' AS queue, w.id AS value FROM written AS w WHERE w.state = 'dead'
UNION ALL
-- A twelfth of the lease later, if it is due already and could not be done.
SELECT 'look_again', '', min(CASE WHEN o.seconds > 0 THEN o.seconds ELSE extract(epoch FROM o.lease) / 12 END)::text
FROM others AS o
HAVING count(*) > 0
UNION ALL
SELECT 'duty_given', '', t.name FROM taken AS t
UNION ALL
SELECT 'ends_unreported', '', ''
WHERE EXISTS (
    SELECT FROM hybrid_runner.unreported_ends AS e
    WHERE e.taken_at IS NULL -- as take_unreported_ends.sql has it
        OR e.taken_at NOT BETWEEN clock_timestamp() - interval '1 minute' AND clock_timestamp() + interval '1 second'
)
UNION ALL
SELECT CASE WHEN m.is_cancelled THEN 'cancel_requested' ELSE 'job_hung' END, '', m.id::text
FROM mine AS m
WHERE m.is_cancelled OR m.is_hung
UNION ALL
SELECT 'row_gone', '', r.id || ' ' || r.claim
FROM (
    SELECT u.id, u.claim FROM unnest($3::int8[], $4::int8[]) AS u (id, claim)
    EXCEPT
    SELECT m.id, m.claim FROM mine AS m
) AS r
WHERE EXISTS (SELECT FROM alive)
UNION ALL
-- One probe of an index where there are no schedules.
SELECT 'next_tick', '', extract(epoch FROM t.delay)::text
FROM (SELECT hybrid_runner.next_tick() AS delay) AS t
WHERE t.delay IS NOT NULL
UNION ALL
SELECT 'shortest_lease', '', extract(epoch FROM min(w.lease))::text
FROM hybrid_runner.workers AS w
WHERE w.dead_at IS NULL
HAVING count(*) > 0
UNION ALL
SELECT 'live_worker', '', jsonb_build_array(w.id, w.kinds_hash, ARRAY(SELECT jsonb_object_keys(w.queues)))::text
FROM hybrid_runner.workers AS w
WHERE w.dead_at IS NULL AND w.heartbeat_at + w.lease > clock_timestamp()
