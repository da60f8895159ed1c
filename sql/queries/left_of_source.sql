-- left_of_source: what keeps a source from being detached: live jobs, one that runs and where, rows
--   that are to be written, whether a worker is there to do that, rows that Postgres refuses, and
--   why.
-- $1 int4 source
SELECT
    (SELECT count(*) FROM hybrid_runner.jobs AS j WHERE j.source = $1)::int4 AS jobs,
    r.id AS job_id, r.worker_id, l.late, EXISTS (
        SELECT FROM hybrid_runner.workers AS w
        WHERE w.dead_at IS NULL AND w.heartbeat_at + w.lease > clock_timestamp()
    ) AS has_worker, l.refused, l.why
FROM (
    SELECT
        count(*) FILTER (WHERE NOT l.is_refused OR l.why LIKE '%(55P03)')::int4 AS late,
        count(*) FILTER (WHERE l.is_refused AND l.why NOT LIKE '%(55P03)')::int4 AS refused,
        coalesce(
            min(l.why) FILTER (WHERE NOT l.is_refused OR l.why LIKE '%(55P03)'), min(l.why)
        ) AS why
    FROM hybrid_runner.late_rows AS l WHERE l.source = $1
) AS l
LEFT JOIN (
    SELECT j.id, j.worker_id FROM hybrid_runner.jobs AS j
    WHERE j.source = $1 AND j.state = 'running' ORDER BY j.id LIMIT 1
) AS r ON true
