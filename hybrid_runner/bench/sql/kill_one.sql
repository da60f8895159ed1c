-- kill_one: ends a random session of the worker, and says which.
-- $1 text[] names of those that were ended last: another one, if there is one
SELECT session.application_name, clock_timestamp() AS ended_at, pg_terminate_backend(session.pid)
FROM (
    SELECT pid, application_name
    FROM pg_stat_activity
    WHERE datname = current_database() AND application_name LIKE 'hybrid-runner %'
    ORDER BY application_name = ANY ($1), random()
    LIMIT 1
) AS session
