-- dependencies_of: what is stored of the dependencies of these services.
-- $1 int8[] service_ids
SELECT
    d.id, d.service_id, d.name, d.healthy, d.type, d.description, d.impact, d.state, d.code, d.latency_ms,
    d.skipped, d.contact::text AS contact, d.check_details::text AS check_details, d.error::text AS error,
    d.error_message, d.last_checked, d.contrary, d.told, d.missing, d.last_status_change, d.last_error::text AS last_error
FROM hybrid_monitors.dependencies AS d
WHERE d.service_id = ANY ($1)
