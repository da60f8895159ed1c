-- forget_leftovers: remove what is left of services that are gone, and what is over: so many rows
-- of each table. Rows that somebody holds are left for another time.
CREATE OR REPLACE FUNCTION hybrid_monitors.forget_leftovers(most integer DEFAULT 1000) RETURNS integer
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
SET lock_timeout = '300ms'
AS $$
#variable_conflict use_column
DECLARE
    forgotten integer := 0;
    n integer;
BEGIN
    DELETE FROM hybrid_monitors.dependencies AS d
    WHERE d.id IN (
        SELECT o.id FROM hybrid_monitors.dependencies AS o
        WHERE NOT EXISTS (SELECT FROM hybrid_monitors.services AS s WHERE s.id = o.service_id)
            AND NOT EXISTS (
                SELECT FROM hybrid_monitors.standings AS t WHERE t.service_id = o.service_id)
        LIMIT most
        FOR UPDATE OF o SKIP LOCKED
    );
    GET DIAGNOSTICS n = ROW_COUNT;
    forgotten := forgotten + n;
    DELETE FROM hybrid_monitors.asked AS a
    WHERE a.service_id IN (
        SELECT o.service_id FROM hybrid_monitors.asked AS o
        WHERE NOT EXISTS (
            SELECT FROM hybrid_monitors.services AS s WHERE s.id = o.service_id AND s.active)
        LIMIT most
        FOR UPDATE OF o SKIP LOCKED
    );
    GET DIAGNOSTICS n = ROW_COUNT;
    forgotten := forgotten + n;
    DELETE FROM hybrid_monitors.hosts AS h
    WHERE h.host IN (
        SELECT o.host FROM hybrid_monitors.hosts AS o
        WHERE o.looked_at < now() - interval '1 day'
            AND NOT EXISTS (
                SELECT FROM hybrid_monitors.services AS s WHERE s.host = o.host AND s.active)
            AND NOT EXISTS (
                SELECT FROM hybrid_monitors.standings AS t WHERE t.host = o.host)
        LIMIT most
        FOR UPDATE OF o SKIP LOCKED
    );
    GET DIAGNOSTICS n = ROW_COUNT;
    forgotten := forgotten + n;
    DELETE FROM hybrid_monitors.windows AS w
    WHERE w.id IN (
        SELECT o.id FROM hybrid_monitors.windows AS o
        WHERE o.every IS NULL AND o.ends < now() - interval '30 days'
            OR o.service_id IS NOT NULL AND NOT EXISTS (
                SELECT FROM hybrid_monitors.services AS s WHERE s.id = o.service_id)
        LIMIT most
        FOR UPDATE OF o SKIP LOCKED
    );
    GET DIAGNOSTICS n = ROW_COUNT;
    forgotten := forgotten + n;
    -- Changes of services that a round was woken for.
    DELETE FROM hybrid_runner.signals AS s
    WHERE s.id IN (
        SELECT o.id FROM hybrid_runner.signals AS o
        WHERE o.sent_at < now() - interval '1 hour' AND o.key LIKE 'monitors:%'
            AND EXISTS (SELECT FROM hybrid_runner.waits AS w WHERE w.signal_id = o.id)
        LIMIT most
        FOR UPDATE OF o SKIP LOCKED
    );
    GET DIAGNOSTICS n = ROW_COUNT;
    forgotten := forgotten + n;
    -- A service whose parent is gone depends on none. These are rows of editors: one that is held
    -- is left.
    UPDATE hybrid_monitors.services AS s SET depends_on = NULL
    WHERE s.id IN (
        SELECT o.id FROM hybrid_monitors.services AS o
        WHERE o.depends_on IS NOT NULL AND NOT EXISTS (
            SELECT FROM hybrid_monitors.services AS p WHERE p.id = o.depends_on)
        LIMIT most
        FOR NO KEY UPDATE OF o SKIP LOCKED
    );
    GET DIAGNOSTICS n = ROW_COUNT;
    RETURN forgotten + n + hybrid_monitors.forget_strays(most);
END
$$;
