-- find_tables: the relations that a name may mean: those of a schema, or of any that is not
--   Postgres' own.
-- $1 text schema_name, $2 text name
-- odd: a temporary one counts only in this session, and last.
SELECT
    c.oid::int8 AS oid, n.nspname::text AS schema_name, c.relname::text AS name,
    c.oid::regclass::text AS full_name, c.relpersistence = 't' AS is_temporary
FROM pg_class AS c
JOIN pg_namespace AS n ON n.oid = c.relnamespace
WHERE c.relname = $2::text
    AND c.relkind NOT IN ('i', 'I', 't', 'c')
    AND CASE
        WHEN $1::text IS NOT NULL THEN n.nspname = $1
        WHEN c.relpersistence = 't' THEN c.relnamespace = pg_my_temp_schema()
        ELSE n.nspname NOT IN ('pg_catalog', 'information_schema', 'pg_toast')
    END
ORDER BY is_temporary, n.nspname
