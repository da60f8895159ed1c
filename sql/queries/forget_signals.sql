-- forget_signals: delete signals that are no longer kept; returns how many, and how many of them
--   nobody ever took.
-- $1 interval keep, $2 int8 most
-- odd: one that a waiting job has yet to be given stays until that has happened.
-- odd: asked of each one from the oldest on, which NOT EXISTS would not be: as a join it would read
--   all tables.
WITH old AS MATERIALIZED (
    SELECT s.id
    FROM hybrid_runner.signals AS s
    WHERE s.sent_at < clock_timestamp() - $1::interval AND (
        SELECT true FROM hybrid_runner.jobs AS j
        WHERE j.waits_for = s.key AND j.waits_for IS NOT NULL AND j.state = 'queued' AND j.id <= s.newest_job
            AND (SELECT true FROM hybrid_runner.waits AS w WHERE w.job_id = j.id AND w.signal_id = s.id LIMIT 1) IS NULL
        LIMIT 1
    ) IS NULL
    ORDER BY s.sent_at
    LIMIT $2
),
gone AS (
    DELETE FROM hybrid_runner.signals AS s WHERE s.id = ANY (ARRAY(SELECT o.id FROM old AS o))
    RETURNING s.id, (SELECT true FROM hybrid_runner.waits AS w WHERE w.signal_id = s.id LIMIT 1) AS is_taken
)
SELECT count(*) AS forgotten, count(*) FILTER (WHERE g.is_taken IS NULL) AS dropped
FROM gone AS g
