-- describe_references: a table's foreign keys of one column.
-- $1 int8 oid
SELECT
    a.attname::text AS column_name, k.confrelid::regclass::text AS to_table,
    quote_ident(r.attname) AS to_column, NOT c.relrowsecurity AS shows_all
FROM pg_constraint AS k
JOIN pg_attribute AS a ON a.attrelid = k.conrelid AND a.attnum = k.conkey[1]
JOIN pg_attribute AS r ON r.attrelid = k.confrelid AND r.attnum = k.confkey[1]
JOIN pg_class AS c ON c.oid = k.confrelid
WHERE k.conrelid = $1::int8::oid AND k.contype = 'f' AND cardinality(k.conkey) = 1
ORDER BY k.conname
