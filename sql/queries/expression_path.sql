-- expression_path: the search path by which expressions over a table are read: Postgres' own names
--   first, then those of the table's schema, of public and of its columns' types.
-- $1 int8 oid
-- odd: pg_temp would come first if it were not named.
SELECT 'pg_catalog, ' || coalesce(
    string_agg(quote_ident(s.name), ', ' ORDER BY s.place, s.name) || ', ', ''
) || 'pg_temp' AS path
FROM (
    SELECT p.name, min(p.place) AS place
    FROM (
        SELECT n.nspname AS name, 1 AS place
        FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
        WHERE c.oid = $1::int8::oid
        UNION ALL
        SELECT n.nspname, 2 FROM pg_namespace AS n WHERE n.nspname = 'public'
        UNION ALL
        SELECT n.nspname, 3
        FROM pg_attribute AS a
        JOIN pg_type AS t ON t.oid = a.atttypid
        JOIN pg_namespace AS n ON n.oid = t.typnamespace
        WHERE a.attrelid = $1::int8::oid AND a.attnum > 0 AND n.nspname <> 'pg_catalog'
    ) AS p
    GROUP BY p.name
) AS s
