-- forget_waits: delete what jobs were given once nobody can ask for it again: the signal is
--   forgotten, and the job has ended or is past it; returns how many.
-- $1 interval keep, $2 int8 most
-- odd: written as forget_signals.sql is, for the same reason.
WITH old AS MATERIALIZED (
    SELECT w.id
    FROM hybrid_runner.waits AS w
    WHERE w.taken_at < clock_timestamp() - $1::interval
        AND (SELECT true FROM hybrid_runner.signals AS s WHERE s.id = w.signal_id LIMIT 1) IS NULL
        AND (
            SELECT true FROM hybrid_runner.jobs AS j
            WHERE j.id = w.job_id AND (w.run IS NULL OR w.run = coalesce(j.began_at, j.started_at))
                AND (w.call IS NOT NULL OR w.wake_of = j.snoozes)
            LIMIT 1
        ) IS NULL
    ORDER BY w.taken_at
    LIMIT $2
),
gone AS (
    DELETE FROM hybrid_runner.waits AS w WHERE w.id = ANY (ARRAY(SELECT o.id FROM old AS o))
    RETURNING w.id
)
SELECT count(*) FROM gone
