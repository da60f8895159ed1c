-- events_after: the events behind one, the oldest first.
-- $1 int8 behind, $2 int4 most
SELECT e.id, e.at, e.kind, e.service_id, e.payload::text AS payload, e.suppressed
FROM hybrid_monitors.events AS e
WHERE e.id > $1::int8
ORDER BY e.id
LIMIT $2::int4
