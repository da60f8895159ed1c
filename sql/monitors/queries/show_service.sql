-- show_service: everything about one service, by its name.
-- $1 text name
SELECT
    o.id, o.name, o.host, o.state, o.since, o.failure, o.error, o.breaker, o.failures, o.latency_ms,
    o.polled_at, o.due_at, d.dependencies, d.unhealthy, o.warnings::text AS warnings,
    o.labels::text AS labels, s.url, s.every, s.timeout, s.format, s.mapping::text AS mapping,
    s.expect::text AS expect, s.headers::text AS headers, s.follow::int4 AS follow,
    s.fail_after::int4 AS fail_after, s.recover_after::int4 AS recover_after,
    parent.name AS depends_on, s.active, s.quiet_until, st.opened_at, st.certificate_ends_at,
    s.created_at
FROM hybrid_monitors.services AS s
JOIN hybrid_monitors.overview AS o ON o.id = s.id
LEFT JOIN hybrid_monitors.standings AS st ON st.service_id = s.id
LEFT JOIN hybrid_monitors.services AS parent ON parent.id = s.depends_on
CROSS JOIN LATERAL (
    SELECT
        count(*)::int4 AS dependencies, count(*) FILTER (WHERE NOT p.healthy)::int4 AS unhealthy
    FROM hybrid_monitors.dependencies AS p WHERE p.service_id = s.id
) AS d
WHERE s.name = $1::text
