-- stopped_services: which services have stopped, of those that were polled on this host, and of
-- those that come here from another one: ids, names, and whether they are deleted.
CREATE OR REPLACE FUNCTION hybrid_monitors.stopped_services(host text, taken bigint[]) RETURNS json
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_column
BEGIN
    -- Of one whose first poll was put off nothing was told.
    DELETE FROM hybrid_monitors.standings AS t
    WHERE t.host = stopped_services.host AND NOT t.is_started AND NOT EXISTS (
        SELECT FROM hybrid_monitors.services AS s
        WHERE s.id = t.service_id AND s.active AND s.host = t.host);
    RETURN (
        SELECT coalesce(json_agg(json_build_array(g.service_id, g.name, g.is_deleted)), '[]')
        FROM (
            SELECT t.service_id, t.name, s.id IS NULL AS is_deleted
            FROM hybrid_monitors.standings AS t
            LEFT JOIN hybrid_monitors.services AS s ON s.id = t.service_id
            WHERE t.host = stopped_services.host
                AND (s.id IS NULL OR NOT s.active OR s.host <> stopped_services.host)
            UNION ALL
            -- What comes from another host has stopped there before it starts here.
            SELECT t.service_id, t.name, false
            FROM unnest(taken) AS i (id)
            JOIN hybrid_monitors.standings AS t ON t.service_id = i.id
            WHERE t.host <> stopped_services.host AND t.is_started
            LIMIT 1000
        ) AS g
    );
END
$$;
