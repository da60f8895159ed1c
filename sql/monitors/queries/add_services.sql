-- add_services: store many services at once, whose columns are given as to add_service(); how many.
-- $1 text services
-- odd: one statement, so that their hosts are told of once.
WITH added AS (
    INSERT INTO hybrid_monitors.services (
        name, url, every, timeout, format, mapping, expect, headers, follow, fail_after,
        recover_after, labels, active
    )
    SELECT
        c.name, c.url, coalesce(c.every, interval '30 s'), coalesce(c.timeout, interval '10 s'),
        c.format, c.mapping, c.expect, c.headers, coalesce(c.follow, 0), coalesce(c.fail_after, 1),
        coalesce(c.recover_after, 1), coalesce(c.labels, '{}'), coalesce(c.active, true)
    FROM jsonb_array_elements($1::text::jsonb) AS e (k)
    CROSS JOIN LATERAL hybrid_monitors.service_columns_of(e.k) AS c
    RETURNING 1
)
SELECT count(*)::int4 AS services FROM added
