-- horizon_age: for how many seconds somebody has kept vacuum from cleaning up.
-- Slots and standbys say a transaction's number alone: what `growth` notes every ten minutes says
-- how old that is.
CREATE OR REPLACE FUNCTION hybrid_runner.horizon_age() RETURNS double precision
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
    SELECT coalesce(
        greatest(0, extract(epoch FROM clock_timestamp() - min(held.since))), 0
    )::double precision
    FROM (
        SELECT a.xact_start AS since
        FROM pg_stat_activity AS a
        WHERE a.datname = current_database() AND a.backend_type = 'client backend'
            AND (a.backend_xmin IS NOT NULL OR a.backend_xid IS NOT NULL)
            AND a.pid <> pg_backend_pid()
        UNION ALL
        SELECT p.prepared FROM pg_prepared_xacts AS p WHERE p.database = current_database()
        UNION ALL
        SELECT min(h.noted_at)
        FROM hybrid_runner.xid_history AS h
        JOIN (
            SELECT s.xmin::text::bigint AS id FROM pg_replication_slots AS s
            UNION ALL
            SELECT s.catalog_xmin::text::bigint FROM pg_replication_slots AS s
            UNION ALL
            SELECT r.backend_xmin::text::bigint FROM pg_stat_replication AS r
        ) AS kept ON ((h.next_xid - kept.id) & 4294967295) BETWEEN 1 AND 2147483647
    ) AS held (since)
$$;
