-- find_schema: whether there is a list of migrations, whether reading it runs code of somebody
--   else, and who owns the schema if that is a stranger to a superuser.
-- odd: asked of the catalogue alone, before anything in the schema is touched. That a superuser is
--   a member of the owner says nothing: the owner may have granted it.
SELECT
    c.oid IS NOT NULL AS is_there,
    c.oid IS NULL OR c.relkind = 'r' AND NOT c.relrowsecurity AND NOT EXISTS (
        SELECT FROM pg_attribute AS a JOIN pg_type AS t ON t.oid = a.atttypid
        WHERE a.attrelid = c.oid AND t.typnamespace <> 'pg_catalog'::regnamespace
    ) AS is_plain,
    CASE WHEN current_setting('is_superuser')::boolean THEN (
        SELECT r.rolname::text FROM pg_roles AS r
        WHERE r.oid IN (n.nspowner, c.relowner) AND NOT r.rolsuper
        LIMIT 1
    ) END AS stranger
FROM pg_namespace AS n
LEFT JOIN pg_class AS c ON c.relnamespace = n.oid AND c.relname = 'migrations'
WHERE n.nspname = 'hybrid_runner'
