-- show_dependencies: the dependencies of a service, the unhealthy ones first.
-- $1 int8 service_id
SELECT
    d.name, d.canonical_name, d.type, d.description, d.impact, d.healthy, d.state::int4 AS state,
    d.code, d.latency_ms, d.skipped, d.missing::int4 AS missing, d.last_checked,
    d.last_status_change, d.contact::text AS contact, d.check_details::text AS check_details,
    d.error::text AS error, d.error_message
FROM hybrid_monitors.dependencies AS d
WHERE d.service_id = $1::int8
ORDER BY d.healthy, d.name COLLATE "C"
LIMIT 1000
