-- recognised_services: which of these services are as the worker knows them: nobody has written
-- their rows since, nobody asks for them, and nothing says that nobody is to be told of them.
CREATE OR REPLACE FUNCTION hybrid_monitors.recognised_services(
    host text, taken bigint[], known_ids bigint[], known_versions xid[], known_standings xid[],
    has_windows boolean
) RETURNS bigint[]
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp
SET enable_hashjoin = true SET enable_nestloop = off
AS $$
#variable_conflict use_column
DECLARE
    asked bigint[] := '{}';
BEGIN
    IF EXISTS (SELECT FROM hybrid_monitors.asked) THEN
        asked := ARRAY(SELECT a.service_id FROM hybrid_monitors.asked AS a WHERE a.service_id = ANY (taken));
    END IF;
    RETURN ARRAY(
        SELECT s.id
        FROM hybrid_monitors.services AS s
        JOIN hybrid_monitors.standings AS t ON t.service_id = s.id AND t.host = s.host
        JOIN unnest(known_ids, known_versions, known_standings) AS k (id, version, standing)
            ON k.id = s.id
        WHERE s.host = recognised_services.host AND s.active AND t.host = recognised_services.host
            AND s.xmin = k.version AND t.xmin = k.standing AND s.id = ANY (taken)
            AND s.id <> ALL (asked)
            AND CASE WHEN has_windows OR s.depends_on IS NOT NULL OR s.quiet_until IS NOT NULL
                THEN hybrid_monitors.why_suppressed(s.id, s.depends_on, s.labels, s.quiet_until)
                END IS NULL
    );
END
$$;
