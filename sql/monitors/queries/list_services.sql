-- list_services: services in the order of what should be looked at first, then of their names.
-- $1 text state, $2 text host, $3 text part, $4 text label, $5 text label_value, $6 int4 most,
-- $7 int4 skipped
-- odd: dependencies are counted for those that are listed alone; what is NULL is not asked for.
SELECT
    o.id, o.name, o.host, o.state, o.since, o.failure, o.error, o.breaker, o.failures, o.latency_ms,
    o.polled_at, o.due_at, d.dependencies, d.unhealthy, o.warnings::text AS warnings,
    o.labels::text AS labels
FROM (
    SELECT
        w.id, w.name, w.host, w.state, w.since, w.failure, w.error, w.breaker, w.failures,
        w.latency_ms, w.polled_at, w.due_at, w.warnings, w.labels,
        array_position(ARRAY['down', 'unknown', 'maintenance', 'up', 'paused'], w.state) AS rank
    FROM hybrid_monitors.overview AS w
    WHERE ($1::text IS NULL OR w.state = $1::text) AND ($2::text IS NULL OR w.host = lower($2::text))
        AND ($3::text IS NULL OR strpos(lower(w.name), lower($3::text)) > 0)
        AND ($4::text IS NULL OR w.labels ->> $4::text = $5::text)
    ORDER BY rank, w.name COLLATE "C"
    LIMIT $6::int4 OFFSET $7::int4
) AS o
CROSS JOIN LATERAL (
    SELECT
        count(*)::int4 AS dependencies, count(*) FILTER (WHERE NOT p.healthy)::int4 AS unhealthy
    FROM hybrid_monitors.dependencies AS p WHERE p.service_id = o.id
) AS d
ORDER BY o.rank, o.name COLLATE "C"
