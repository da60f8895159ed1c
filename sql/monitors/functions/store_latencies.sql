-- store_latencies: what answers said of latencies, as one row; zeros say nothing.
CREATE OR REPLACE FUNCTION hybrid_monitors.store_latencies(
    host text, kept bigint[], services bigint[], names text[], latencies integer[], now timestamptz
) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_column
BEGIN
    IF cardinality(store_latencies.services) = 0 THEN
        RETURN;
    END IF;
    INSERT INTO hybrid_monitors.latencies (at, host, dependency_ids, milliseconds)
    SELECT store_latencies.now, store_latencies.host, l.ids, l.ms
    FROM (
        SELECT array_agg(d.id ORDER BY d.id) AS ids, array_agg(n.ms ORDER BY d.id) AS ms
        FROM unnest(store_latencies.services, store_latencies.names, store_latencies.latencies)
            AS n (service_id, name, ms)
        JOIN hybrid_monitors.dependencies AS d ON d.service_id = n.service_id AND d.name = n.name
        WHERE n.ms > 0 AND n.service_id = ANY (store_latencies.kept)
    ) AS l
    WHERE l.ids IS NOT NULL;
END
$$;
