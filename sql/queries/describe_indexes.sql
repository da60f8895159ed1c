-- describe_indexes: a table's valid indexes.
-- $1 int8 oid
SELECT
    i.relname::text AS name,
    ARRAY(
        SELECT a.attname::text
        FROM unnest((x.indkey::int2[])[0:x.indnkeyatts - 1]) WITH ORDINALITY AS k (attnum, place)
        LEFT JOIN pg_attribute AS a
            ON a.attrelid = x.indrelid AND a.attnum = k.attnum AND k.attnum > 0
        ORDER BY k.place
    ) AS columns,
    x.indisunique OR x.indisexclusion AS is_unique,
    x.indisunique AND x.indimmediate AND x.indpred IS NULL AND x.indexprs IS NULL AS names_rows,
    x.indisprimary AS is_primary,
    pg_get_expr(x.indpred, x.indrelid) AS predicate
FROM pg_index AS x
JOIN pg_class AS i ON i.oid = x.indexrelid
WHERE x.indrelid = $1::int8::oid AND x.indisvalid
ORDER BY x.indisprimary DESC, i.relname
