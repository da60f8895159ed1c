-- take_signal: what a call of job.signal() is given: what it was given before, what the job was
--   woken for, a signal that is there, or the time-out; returns (is_locked, is_given, signal_id,
--   payload).
-- $1 int8 id, $2 int8 claim, $3 text key, $4 int4 call
-- odd: is_given is false when there is nothing yet: the job is to wait. signal_id is NULL for a
--   time-out. No row: the claim is stale.
-- odd: the calls of one key are numbered within a run, and an attempt that begins again makes them
--   again.
WITH asked AS MATERIALIZED (
    SELECT j.id, j.waits_for, j.snoozes, coalesce(j.began_at, j.started_at) AS run
    FROM hybrid_runner.jobs AS j
    WHERE j.id = $1 AND j.claim = $2
    FOR NO KEY UPDATE OF j SKIP LOCKED
),
adopted AS (
    UPDATE hybrid_runner.waits AS w SET run = a.run FROM asked AS a
    WHERE w.job_id = a.id AND w.run IS NULL AND w.wake_of IS NULL
),
known AS MATERIALIZED (
    SELECT w.key, w.call, w.wake_of, w.signal_id, w.payload
    FROM asked AS a
    JOIN hybrid_runner.waits AS w ON w.job_id = a.id AND (w.run = a.run OR w.run IS NULL)
    WHERE (w.key = $3 AND w.call = $4) OR w.wake_of = a.snoozes
),
had AS MATERIALIZED (
    SELECT k.signal_id, k.payload FROM known AS k WHERE k.key = $3 AND k.call = $4
),
woken AS (
    UPDATE hybrid_runner.waits AS w SET call = $4
    FROM asked AS a
    WHERE w.job_id = a.id AND w.wake_of = a.snoozes AND w.key = $3 AND w.call IS NULL
        AND (w.run = a.run OR w.run IS NULL) AND NOT EXISTS (SELECT FROM had)
    RETURNING w.signal_id, w.payload
),
fresh AS MATERIALIZED (
    SELECT s.id, s.payload, a.snoozes AS wake_of
    FROM asked AS a
    CROSS JOIN LATERAL (
        SELECT g.id, g.payload
        FROM hybrid_runner.signals AS g
        WHERE g.key = $3 AND g.newest_job >= a.id
            AND (SELECT true FROM hybrid_runner.waits AS b WHERE b.job_id = a.id AND b.signal_id = g.id LIMIT 1) IS NULL
        ORDER BY g.newest_job, g.id
        LIMIT 1
    ) AS s
    WHERE NOT EXISTS (SELECT FROM had)
        AND NOT EXISTS (SELECT FROM known AS k WHERE k.wake_of = a.snoozes AND k.key = $3 AND k.call IS NULL)
),
given AS (
    INSERT INTO hybrid_runner.waits AS w (job_id, run, key, call, wake_of, signal_id, payload)
    SELECT
        a.id, a.run, $3, $4,
        -- what the job waited for, if nothing of this wait was given to it yet
        CASE WHEN a.waits_for = $3 AND NOT EXISTS (SELECT FROM known AS k WHERE k.wake_of = a.snoozes) THEN a.snoozes END,
        f.id, f.payload
    FROM asked AS a
    LEFT JOIN fresh AS f ON true
    WHERE NOT EXISTS (SELECT FROM had)
        AND NOT EXISTS (SELECT FROM known AS k WHERE k.wake_of = a.snoozes AND k.key = $3 AND k.call IS NULL)
        AND (
            f.id IS NOT NULL
            OR (a.waits_for = $3 AND NOT EXISTS (SELECT FROM known AS k WHERE k.wake_of = a.snoozes))
        )
    RETURNING w.signal_id, w.payload
),
answer AS MATERIALIZED (
    SELECT h.signal_id, h.payload FROM had AS h
    UNION ALL
    SELECT w.signal_id, w.payload FROM woken AS w
    UNION ALL
    SELECT g.signal_id, g.payload FROM given AS g
)
SELECT false AS is_locked, count(n.*) > 0 AS is_given, max(n.signal_id) AS signal_id, max(n.payload::text) AS payload
FROM asked AS a
LEFT JOIN answer AS n ON true
GROUP BY a.id
UNION ALL
SELECT true, false, NULL, NULL
FROM hybrid_runner.jobs AS j
WHERE j.id = $1 AND j.claim = $2 AND NOT EXISTS (SELECT FROM asked)
