-- newest_events: the newest events, the oldest of them first.
-- $1 int4 most
SELECT n.id, n.at, n.kind, n.service_id, n.payload, n.suppressed
FROM (
    SELECT e.id, e.at, e.kind, e.service_id, e.payload::text AS payload, e.suppressed
    FROM hybrid_monitors.events AS e
    ORDER BY e.id DESC
    LIMIT $1::int4
) AS n
ORDER BY n.id
