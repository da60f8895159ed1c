-- known_services: which of these names services have.
-- $1 text[] names
SELECT s.name FROM hybrid_monitors.services AS s WHERE s.name = ANY($1::text[])
