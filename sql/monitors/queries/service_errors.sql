-- service_errors: the error history of a service and of its dependencies, the newest first; of one
--   dependency if it is named.
-- $1 int8 service_id, $2 interval lasting, $3 text dependency, $4 int4 most
SELECT e.at, e.dependency, e.error, e.message
FROM (
    (
        SELECT r.at, NULL::text AS dependency, r.error::text AS error, r.message
        FROM hybrid_monitors.errors AS r
        WHERE r.service_id = $1::int8 AND r.dependency_id IS NULL AND $3::text IS NULL
            AND r.at > now() - $2::interval
        ORDER BY r.at DESC
        LIMIT $4::int4
    )
    UNION ALL
    (
        SELECT r.at, d.name AS dependency, r.error::text AS error, r.message
        FROM hybrid_monitors.dependencies AS d
        JOIN hybrid_monitors.errors AS r ON r.dependency_id = d.id
        WHERE d.service_id = $1::int8 AND ($3::text IS NULL OR d.name = $3::text)
            AND r.at > now() - $2::interval
        ORDER BY r.at DESC
        LIMIT $4::int4
    )
) AS e
ORDER BY e.at DESC
LIMIT $4::int4
