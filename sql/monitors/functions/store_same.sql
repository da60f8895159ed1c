-- store_same: the times of services that are as they were, and the latencies that they told. Those
-- that have another address by now, or are paused or gone, are dropped. Returns which were written,
-- and when the first of them is due.
CREATE OR REPLACE FUNCTION hybrid_monitors.store_same(
    host text, ids bigint[], dues timestamptz[], polls timestamptz[], latencies integer[],
    told_services bigint[], told_dependencies bigint[], told_latencies integer[], now timestamptz,
    OUT written bigint[], OUT first_due timestamptz
)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_column
BEGIN
    WITH changed AS (
        UPDATE hybrid_monitors.standings AS t SET
            due_at = n.due_at, polled_at = n.polled_at, latency_ms = n.ms
        FROM unnest(ids, dues, polls, latencies) AS n (id, due_at, polled_at, ms)
        JOIN hybrid_monitors.services AS s ON s.id = n.id
        WHERE t.service_id = n.id AND t.url = s.url AND s.active AND s.host = store_same.host
        RETURNING t.service_id, t.due_at
    )
    SELECT coalesce(array_agg(c.service_id), '{}'), min(c.due_at)
    INTO store_same.written, store_same.first_due FROM changed AS c;
    IF cardinality(written) < cardinality(ids)
        OR cardinality(told_dependencies) <> cardinality(told_latencies)
        OR array_position(told_dependencies, NULL) IS NOT NULL
        OR (0 < ALL (told_latencies)) IS NOT true
    THEN
        SELECT coalesce(array_agg(u.id), '{}'), coalesce(array_agg(u.ms), '{}')
        INTO told_dependencies, told_latencies
        FROM unnest(told_services, told_dependencies, told_latencies) AS u (service_id, id, ms)
        WHERE u.service_id = ANY (written) AND u.id IS NOT NULL AND u.ms > 0;
    END IF;
    -- Longer rows would be compressed, which takes as long as all the rest.
    INSERT INTO hybrid_monitors.latencies (at, host, dependency_ids, milliseconds)
    SELECT
        store_same.now, store_same.host, told_dependencies[c.first:c.first + 139],
        told_latencies[c.first:c.first + 139]
    FROM generate_series(1, cardinality(told_dependencies), 140) AS c (first);
END
$$;
