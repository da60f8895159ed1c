-- kill_one: ends a random session of the worker, and says which.
SELECT session.application_name, clock_timestamp() AS ended_at, pg_terminate_backend(session.pid)
FROM (
    SELECT pid, application_name
    FROM pg_stat_activity
    WHERE datname = current_database() AND application_name LIKE 'hybrid-runner %'
    ORDER BY random()
    LIMIT 1
) AS session
