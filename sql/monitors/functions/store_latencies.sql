-- store_latencies: what answers said of latencies, as one row; zeros say nothing.
CREATE OR REPLACE FUNCTION hybrid_monitors.store_latencies(
    host text, kept bigint[], services bigint[], names text[], latencies integer[], now timestamptz
) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
-- One look for the dependencies of each service, and a hash of what was found.
SET enable_hashjoin = true SET enable_nestloop = false
AS $$
#variable_conflict use_column
BEGIN
    IF cardinality(store_latencies.services) = 0 THEN
        RETURN;
    END IF;
    INSERT INTO hybrid_monitors.latencies (at, host, dependency_ids, milliseconds)
    SELECT store_latencies.now, store_latencies.host, l.ids, l.ms
    FROM (
        WITH own AS MATERIALIZED (
            SELECT d.id, d.service_id, d.name FROM hybrid_monitors.dependencies AS d
            WHERE d.service_id = ANY (store_latencies.kept)
        )
        SELECT array_agg(o.id) AS ids, array_agg(n.ms) AS ms
        FROM unnest(store_latencies.services, store_latencies.names, store_latencies.latencies)
            AS n (service_id, name, ms)
        JOIN own AS o ON o.service_id = n.service_id AND o.name = n.name
        WHERE n.ms > 0
    ) AS l
    WHERE l.ids IS NOT NULL;
END
$$;
