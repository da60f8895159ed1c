-- store_dependencies: what polls of these services have changed of dependencies and of their error
-- histories; how many have changed from healthy to unhealthy or back.
CREATE OR REPLACE FUNCTION hybrid_monitors.store_dependencies(
    kept bigint[], round jsonb, now timestamptz
) RETURNS integer
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_column
DECLARE
    changes integer := 0;
BEGIN
    IF round ? 'dependencies' THEN
        WITH named AS MATERIALIZED (
            -- one of each name: a statement may not touch a row twice
            SELECT DISTINCT ON (r.service_id, r.name) r.*, c.status_changed
            FROM jsonb_array_elements(round -> 'dependencies') WITH ORDINALITY AS e (value, place)
            CROSS JOIN LATERAL jsonb_populate_record(NULL::hybrid_monitors.dependencies, e.value) AS r
            CROSS JOIN LATERAL (
                SELECT (e.value ->> 'status_changed')::boolean) AS c (status_changed)
            WHERE r.service_id = ANY (kept)
            ORDER BY r.service_id, r.name, e.place
        ),
        written AS (
            INSERT INTO hybrid_monitors.dependencies AS d (
                service_id, name, canonical_name, type, description, impact, healthy, state, code,
                latency_ms, skipped, contact, check_details, error, error_message, last_checked,
                last_status_change, contrary, told, missing, changed_at
            )
            SELECT
                n.service_id, n.name, coalesce(a.canonical_name, n.name), n.type, n.description,
                n.impact, n.healthy, n.state, n.code, n.latency_ms, n.skipped,
                nullif(n.contact, 'null'), nullif(n.check_details, 'null'), nullif(n.error, 'null'),
                n.error_message, coalesce(n.last_checked, now),
                CASE WHEN n.status_changed THEN now END, n.contrary, n.told, n.missing, now
            FROM named AS n
            LEFT JOIN hybrid_monitors.aliases AS a ON a.alias = n.name
            ORDER BY n.service_id, n.name
            ON CONFLICT (service_id, name) DO UPDATE SET
                canonical_name = excluded.canonical_name, type = excluded.type,
                description = excluded.description, impact = excluded.impact,
                healthy = excluded.healthy, state = excluded.state, code = excluded.code,
                latency_ms = excluded.latency_ms, skipped = excluded.skipped,
                contact = excluded.contact, check_details = excluded.check_details,
                error = excluded.error, error_message = excluded.error_message,
                last_checked = excluded.last_checked,
                last_status_change = coalesce(excluded.last_status_change, d.last_status_change),
                contrary = excluded.contrary, told = excluded.told, missing = excluded.missing,
                changed_at = excluded.changed_at
        )
        SELECT count(*) FILTER (WHERE n.status_changed) INTO changes FROM named AS n;
    END IF;
    IF round ? 'errors' THEN
        INSERT INTO hybrid_monitors.errors (at, service_id, dependency_id, error, message)
        SELECT now, n.service_id, d.id, nullif(n.error, 'null'), n.message
        FROM jsonb_to_recordset(round -> 'errors')
            AS n (service_id bigint, name text, error jsonb, message text)
        LEFT JOIN hybrid_monitors.dependencies AS d
            ON d.service_id = n.service_id AND d.name = n.name
        WHERE n.service_id = ANY (kept) AND (n.name IS NULL OR d.id IS NOT NULL);
        UPDATE hybrid_monitors.dependencies AS d SET last_error = nullif(n.error, 'null')
        FROM jsonb_to_recordset(round -> 'errors') AS n (service_id bigint, name text, error jsonb)
        WHERE d.service_id = n.service_id AND d.name = n.name AND n.service_id = ANY (kept);
    END IF;
    IF round ? 'gone' THEN
        DELETE FROM hybrid_monitors.dependencies AS d
        USING jsonb_to_recordset(round -> 'gone') AS n (service_id bigint, name text)
        WHERE d.service_id = n.service_id AND d.name = n.name AND n.service_id = ANY (kept);
    END IF;
    RETURN changes;
END
$$;
