-- end_session: end an earlier session for the same purpose, so that its statement cannot take
--   effect later; waits a second for its end.
-- $1 int4 pid
-- odd: by way of a pooler the pid is nobody's, or a stranger's: only our own role's sessions of
--   the same name are ended.
SELECT pg_terminate_backend(a.pid, 1000) AS ended
FROM pg_stat_activity AS a
WHERE a.pid = $1 AND a.usename = current_user AND a.application_name = current_setting('application_name')
    AND a.pid <> pg_backend_pid()
