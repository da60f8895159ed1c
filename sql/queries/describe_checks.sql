-- describe_checks: a table's CHECK constraints that are enforced.
-- $1 int8 oid
-- odd: whether one is enforced is a column of the catalogue from 18 on, and always in the text.
SELECT
    k.conname::text AS name,
    ARRAY(
        SELECT a.attname::text FROM pg_attribute AS a
        WHERE a.attrelid = k.conrelid AND a.attnum = ANY (k.conkey)
        ORDER BY a.attnum
    ) AS columns,
    pg_get_expr(k.conbin, k.conrelid) AS expression
FROM pg_constraint AS k
WHERE k.conrelid = $1::int8::oid AND k.contype = 'c'
    AND pg_get_constraintdef(k.oid) NOT LIKE '%NOT ENFORCED'
ORDER BY k.conname
