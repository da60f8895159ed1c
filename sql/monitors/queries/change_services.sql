-- change_services: change many services at once, by their names, in the columns that are given for
--   each, as update_service() does; how many.
-- $1 text services
WITH changed AS (
    UPDATE hybrid_monitors.services AS s SET
        url = CASE WHEN n.k ? 'url' THEN n.url ELSE s.url END,
        every = CASE WHEN n.k ? 'every' THEN n.every ELSE s.every END,
        timeout = CASE WHEN n.k ? 'timeout' THEN n.timeout ELSE s.timeout END,
        format = CASE WHEN n.k ? 'format' THEN n.format WHEN n.k ? 'mapping' THEN NULL ELSE s.format END,
        mapping = CASE WHEN n.k ? 'mapping' THEN n.mapping ELSE s.mapping END,
        expect = CASE WHEN n.k ? 'expect' THEN n.expect ELSE s.expect END,
        headers = CASE WHEN n.k ? 'headers' THEN n.headers ELSE s.headers END,
        follow = CASE WHEN n.k ? 'follow' THEN n.follow ELSE s.follow END,
        fail_after = CASE WHEN n.k ? 'fail_after' THEN n.fail_after ELSE s.fail_after END,
        recover_after = CASE WHEN n.k ? 'recover_after' THEN n.recover_after ELSE s.recover_after END,
        labels = CASE WHEN n.k ? 'labels' THEN n.labels ELSE s.labels END,
        active = CASE WHEN n.k ? 'active' THEN n.active ELSE s.active END
    FROM (
        SELECT
            e.k, c.name, c.url, c.every, c.timeout, c.format, c.mapping, c.expect, c.headers,
            c.follow, c.fail_after, c.recover_after, c.labels, c.active
        FROM jsonb_array_elements($1::text::jsonb) AS e (k)
        CROSS JOIN LATERAL hybrid_monitors.service_columns_of(e.k) AS c
    ) AS n
    WHERE s.name = n.name
    RETURNING 1
)
SELECT count(*)::int4 AS services FROM changed
