-- which_sources: the sources that somebody means by the name of a table, or by a number.
-- $1 text name, $2 text kind
-- odd: a table that was renamed or dropped is found by the name that it had, too.
SELECT s.id, s.kind
FROM hybrid_runner.sources AS s
CROSS JOIN LATERAL (
    SELECT CASE WHEN $1 !~ '^[0-9]+$' THEN parse_ident($1) END AS parts, parse_ident(s.relation_name) AS parts_then
) AS named
LEFT JOIN pg_catalog.pg_class AS c ON c.oid = s.relation
LEFT JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
WHERE ($2::text IS NULL OR s.kind = $2) AND CASE cardinality(named.parts)
    WHEN 1 THEN named.parts[1] IN (c.relname, named.parts_then[2])
    WHEN 2 THEN named.parts IN (ARRAY[n.nspname::text, c.relname::text], named.parts_then)
    ELSE s.id::text = $1
END
ORDER BY s.id
