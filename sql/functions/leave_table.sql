-- leave_table: comes after each call of what was made for an attached table, whose owner's code may
-- have run: nothing of it reaches further. Settings that it left are those of the session again, if
-- that is one of ours (is_own); in another one the caller sets its own path again.
-- Before PostgreSQL 18, triggers that wait for the commit run as whoever commits: those of others
-- than the owners of this schema and superusers are refused.
CREATE OR REPLACE FUNCTION hybrid_runner.leave_table(is_own boolean) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    waiting text;
BEGIN
    IF $1 THEN
        EXECUTE 'RESET ALL';
    END IF;
    IF current_setting('server_version_num')::integer < 180000 THEN
        SELECT format('%s of %s', t.tgname, t.tgrelid::regclass) INTO waiting
        FROM pg_trigger AS t
        JOIN pg_proc AS p ON p.oid = t.tgfoid
        JOIN pg_roles AS r ON r.oid = p.proowner
        WHERE t.tgdeferrable AND NOT r.rolsuper
            AND p.proowner <> (SELECT n.nspowner FROM pg_namespace AS n WHERE n.nspname = 'hybrid_runner')
            AND EXISTS (
                SELECT FROM pg_locks AS l
                WHERE l.pid = pg_backend_pid() AND l.locktype = 'relation' AND l.relation = t.tgrelid
                    AND l.mode = 'RowExclusiveLock' AND l.granted
            )
        LIMIT 1;
        IF waiting IS NOT NULL THEN
            RAISE 'the trigger % can wait for the commit, and would run as whoever writes the row', waiting;
        END IF;
    END IF;
END
$$;
