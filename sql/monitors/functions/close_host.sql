-- close_host: whether the job of this host may end: it has nothing to poll and nothing to stop.
-- Until the caller's transaction ends, in which he ends the job, open_hosts() waits: it sees that
-- job, or that there is none. Whoever adds a service later than this looked is not seen here, and
-- has the host opened.
CREATE OR REPLACE FUNCTION hybrid_monitors.close_host(host text) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_column
BEGIN
    -- As a key, which concerns open_hosts() alone: rounds and other readers wait for nobody.
    PERFORM FROM hybrid_monitors.hosts AS h WHERE h.host = close_host.host FOR UPDATE NOWAIT;
    RETURN FOUND
        AND NOT EXISTS (
            SELECT FROM hybrid_monitors.services AS s WHERE s.host = close_host.host AND s.active)
        AND NOT EXISTS (
            SELECT FROM hybrid_monitors.standings AS t WHERE t.host = close_host.host);
EXCEPTION WHEN lock_not_available THEN
    RETURN false; -- somebody opens it at this moment
END
$$;
