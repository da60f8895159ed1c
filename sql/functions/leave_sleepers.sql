-- leave_sleepers: the caller's session sleeps on no queue. Deletes its rows, and those of sessions
-- that have ended.
CREATE OR REPLACE FUNCTION hybrid_runner.leave_sleepers() RETURNS void
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
    DELETE FROM hybrid_runner.sleepers AS s
    WHERE (s.queue, s.pid) IN (
        SELECT o.queue, o.pid FROM hybrid_runner.sleepers AS o
        WHERE o.pid = pg_backend_pid()
            OR NOT EXISTS (SELECT FROM pg_stat_get_activity(NULL) AS a WHERE a.pid = o.pid)
        FOR UPDATE SKIP LOCKED -- others may be deleting them at this moment
    )
$$;
