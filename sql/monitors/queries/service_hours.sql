-- service_hours: latencies of the dependencies of a service by the hour, the newest first; of one
--   dependency if it is named.
-- $1 int8 service_id, $2 interval lasting, $3 text dependency, $4 int4 most
SELECT
    h.hour, d.name AS dependency, h.answers, h.sum_ms, h.max_ms, h.buckets
FROM hybrid_monitors.dependencies AS d
JOIN hybrid_monitors.hours AS h ON h.dependency_id = d.id
WHERE d.service_id = $1::int8 AND ($3::text IS NULL OR d.name = $3::text)
    AND h.hour > now() - $2::interval - interval '1 hour'
ORDER BY h.hour DESC, d.name COLLATE "C"
LIMIT $4::int4
