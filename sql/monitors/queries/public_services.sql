-- public_services: what anybody may know of services that have a label, the worst first.
-- $1 text label, $2 text label_value, $3 int4 most
-- odd: since when one is degraded, its dependencies say; maintenance has no beginning to tell.
SELECT
    o.name, o.state,
    CASE WHEN o.state = 'up' THEN coalesce(d.ailing_since, o.since)
        WHEN o.state = 'down' THEN o.since END AS since,
    d.dependencies, d.healthy
FROM (
    SELECT
        w.id, w.name, w.state, w.since,
        CASE w.state
            WHEN 'down' THEN 1
            WHEN 'maintenance' THEN 3
            WHEN 'unknown' THEN 4
            ELSE CASE WHEN EXISTS (
                SELECT FROM hybrid_monitors.dependencies AS p
                WHERE p.service_id = w.id AND NOT p.healthy
            ) THEN 2 ELSE 5 END
        END AS rank
    FROM hybrid_monitors.overview AS w
    WHERE w.state <> 'paused' AND ($1::text IS NULL OR w.labels ->> $1::text = $2::text)
    ORDER BY rank, w.name COLLATE "C"
    LIMIT $3::int4
) AS o
CROSS JOIN LATERAL (
    SELECT
        min(p.last_status_change) FILTER (WHERE NOT p.healthy) AS ailing_since,
        coalesce(array_agg(p.name ORDER BY p.healthy, p.name COLLATE "C"), '{}') AS dependencies,
        coalesce(array_agg(p.healthy ORDER BY p.healthy, p.name COLLATE "C"), '{}') AS healthy
    FROM hybrid_monitors.dependencies AS p WHERE p.service_id = o.id
) AS d
ORDER BY o.rank, o.name COLLATE "C"
