-- open_hosts: store the jobs of those of these hosts (NULL: of all) that have active services, or
-- standings of services that are gone, and no job; how many were stored.
CREATE OR REPLACE FUNCTION hybrid_monitors.open_hosts(hosts text[] DEFAULT NULL) RETURNS integer
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
-- A key may be in somebody's open transaction.
SET lock_timeout = '500ms'
AS $$
DECLARE
    closed text[];
    host text;
    opened integer;
BEGIN
    -- Whoever ends the job of one of them has ended it before this looks, or looks after this: by
    -- close_host().
    PERFORM FROM hybrid_monitors.hosts AS h
    WHERE h.host = ANY (open_hosts.hosts)
    ORDER BY h.host COLLATE "C"
    FOR KEY SHARE;
    closed := ARRAY(
        SELECT h.host
        FROM (
            SELECT s.host FROM hybrid_monitors.services AS s
            WHERE s.active AND (open_hosts.hosts IS NULL OR s.host = ANY (open_hosts.hosts))
            UNION
            SELECT t.host FROM hybrid_monitors.standings AS t
            WHERE open_hosts.hosts IS NULL OR t.host = ANY (open_hosts.hosts)
        ) AS h (host)
        WHERE NOT EXISTS (
            SELECT FROM hybrid_runner.jobs AS j WHERE j.key = 'monitors:' || h.host)
        ORDER BY h.host COLLATE "C"
    );
    BEGIN
        RETURN hybrid_monitors.store_rounds(closed);
    EXCEPTION WHEN lock_not_available THEN
        opened := 0;
    END;
    SET LOCAL lock_timeout = '50ms';
    FOREACH host IN ARRAY closed LOOP
        BEGIN
            opened := opened + hybrid_monitors.store_rounds(ARRAY[host]);
        EXCEPTION WHEN lock_not_available THEN
            NULL; -- whoever stores it commits or not; the next look will do
        END;
    END LOOP;
    RETURN opened;
END
$$;
