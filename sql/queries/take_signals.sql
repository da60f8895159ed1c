-- take_signals: what these jobs were woken for: the earliest signal of the key that each waits for
--   and was not given yet; returns (id, is_locked, signal_id, payload). A run that Repeat has begun
--   takes all that are there, so that many at once cost one run.
-- $1 int8[] ids, $2 int8[] claims
-- odd: signal_id is NULL for a job that was woken by the clock. No row: the claim is stale.
-- odd: no snooze yet, and it waits: so it is Repeat that said so. Of the signals that its run takes
--   beside the earliest only the numbers are kept. Those past the 1,000th begin another run.
-- odd: a later attempt after the same snooze is given the same signal.
-- odd: the lock keeps two claims of one job apart: whoever takes it away waits for this statement,
--   which does not wait for whoever has a lock.
-- odd: asked of one signal after the other, from the earliest on: as a join, which NOT EXISTS
--   would be, it may read all of what this job was ever given for each of them.
-- odd: ids of signals are not in the order of their commits, so each that was given is remembered.
WITH asked AS MATERIALIZED (
    SELECT a.id, j.waits_for AS key, j.snoozes, coalesce(j.began_at, j.started_at) AS run
    FROM unnest($1::int8[], $2::int8[]) AS a (id, claim)
    JOIN hybrid_runner.jobs AS j ON j.id = a.id AND j.claim = a.claim
    WHERE j.id = ANY ($1) AND j.waits_for IS NOT NULL
    FOR NO KEY UPDATE OF j SKIP LOCKED
),
adopted AS (
    -- by the first run after retry()
    UPDATE hybrid_runner.waits AS w SET run = a.run FROM asked AS a
    WHERE w.job_id = a.id AND w.run IS NULL
),
had AS MATERIALIZED (
    SELECT a.id, w.signal_id, w.payload
    FROM asked AS a
    JOIN hybrid_runner.waits AS w ON w.job_id = a.id AND w.wake_of = a.snoozes AND (w.run = a.run OR w.run IS NULL)
),
taken AS (
    INSERT INTO hybrid_runner.waits AS w (job_id, run, key, wake_of, signal_id, payload)
    SELECT
        a.id, a.run, a.key, CASE WHEN s.place = 1 THEN a.snoozes END, s.id,
        CASE WHEN s.place = 1 THEN s.payload END
    FROM asked AS a
    CROSS JOIN LATERAL (
        SELECT g.id, g.payload, row_number() OVER (ORDER BY g.newest_job, g.id) AS place
        FROM hybrid_runner.signals AS g
        WHERE g.key = a.key AND g.newest_job >= a.id
            AND (SELECT true FROM hybrid_runner.waits AS b WHERE b.job_id = a.id AND b.signal_id = g.id LIMIT 1) IS NULL
        ORDER BY g.newest_job, g.id
        LIMIT CASE WHEN a.snoozes = 0 THEN 1000 ELSE 1 END
    ) AS s
    WHERE NOT EXISTS (SELECT FROM had AS h WHERE h.id = a.id)
    RETURNING w.job_id AS id, w.wake_of, w.signal_id, w.payload
)
SELECT a.id, false AS is_locked, coalesce(h.signal_id, t.signal_id) AS signal_id, coalesce(h.payload, t.payload)::text AS payload
FROM asked AS a
LEFT JOIN had AS h ON h.id = a.id
LEFT JOIN taken AS t ON t.id = a.id AND t.wake_of IS NOT NULL
UNION ALL
SELECT j.id, true, NULL, NULL
FROM unnest($1::int8[], $2::int8[]) AS a (id, claim)
JOIN hybrid_runner.jobs AS j ON j.id = a.id AND j.claim = a.claim
WHERE j.id = ANY ($1) AND NOT EXISTS (SELECT FROM asked AS k WHERE k.id = j.id)
