-- find_blockers: who holds what a session waits for: (pid, user, application, seconds since its
--   transaction began).
-- $1 int4 pid
-- odd: 0 is a prepared transaction; the time is NULL to whoever may not see it.
SELECT b.pid, a.usename::text AS role, a.application_name AS application, extract(epoch FROM clock_timestamp() - a.xact_start)::float8 AS seconds
FROM unnest(pg_blocking_pids($1)) AS b (pid)
LEFT JOIN pg_stat_activity AS a ON a.pid = b.pid
ORDER BY seconds DESC NULLS LAST, b.pid
