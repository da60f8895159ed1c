-- describe_checks: a table's CHECK constraints that are enforced.
-- $1 int8 oid
-- odd: what is harmless runs functions of superusers and of whoever asks alone. Whether one
--   is enforced is a column of the catalogue from 18 on, and always in the text.
SELECT
    k.conname::text AS name,
    ARRAY(
        SELECT a.attname::text FROM pg_attribute AS a
        WHERE a.attrelid = k.conrelid AND a.attnum = ANY (k.conkey)
        ORDER BY a.attnum
    ) AS columns,
    pg_get_expr(k.conbin, k.conrelid) AS expression,
    k.conbin::text NOT LIKE '%{COERCETODOMAIN %' AND NOT EXISTS (
        SELECT FROM regexp_matches(k.conbin::text, ':(?:op)?funcid (\d+)', 'g') AS m
        JOIN pg_proc AS p ON p.oid = m[1]::oid
        JOIN pg_roles AS o ON o.oid = p.proowner
        WHERE NOT o.rolsuper AND o.rolname <> current_user
    ) AS is_harmless
FROM pg_constraint AS k
WHERE k.conrelid = $1::int8::oid AND k.contype = 'c'
    AND pg_get_constraintdef(k.oid) NOT LIKE '%NOT ENFORCED'
ORDER BY k.conname
