-- add_service: store a service, whose columns are given as JSON: times in seconds, depends_on by
-- name; returns its id. Runs with the rights of whoever calls it.
CREATE OR REPLACE FUNCTION hybrid_monitors.add_service(columns jsonb) RETURNS bigint
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    added bigint;
    c hybrid_monitors.service_columns;
BEGIN
    c := hybrid_monitors.service_columns_of(add_service.columns);
    INSERT INTO hybrid_monitors.services AS s (
        name, url, every, timeout, format, mapping, expect, headers, follow, fail_after,
        recover_after, depends_on, labels, active, quiet_until
    ) VALUES (
        c.name, c.url, coalesce(c.every, interval '30 s'), coalesce(c.timeout, interval '10 s'),
        c.format, c.mapping, c.expect, c.headers, coalesce(c.follow, 0), coalesce(c.fail_after, 1),
        coalesce(c.recover_after, 1), c.depends_on, coalesce(c.labels, '{}'),
        coalesce(c.active, true), c.quiet_until
    ) RETURNING s.id INTO added;
    RETURN added;
END
$$;
