-- set_parents: say of many services at once which others they depend on, NULL: on none; returns the
--   names of those of which that was said.
-- $1 text[] names, $2 text[] parents
UPDATE hybrid_monitors.services AS s SET depends_on = p.id
FROM unnest($1::text[], $2::text[]) AS u (name, parent)
LEFT JOIN hybrid_monitors.services AS p ON p.name = u.parent
WHERE s.name = u.name AND (u.parent IS NULL OR p.id IS NOT NULL)
RETURNING s.name
