-- describe_columns: a table's columns in their order, with the types below their domains.
-- $1 int8 oid
-- odd: the modifier of varchar and char counts four more than the characters that fit.
WITH RECURSIVE layers AS (
    SELECT a.attnum, a.atttypid AS type, a.atttypmod AS modifier, 0 AS depth
    FROM pg_attribute AS a
    WHERE a.attrelid = $1::int8::oid AND a.attnum > 0 AND NOT a.attisdropped
    UNION ALL
    SELECT l.attnum, t.typbasetype, t.typtypmod, l.depth + 1
    FROM layers AS l JOIN pg_type AS t ON t.oid = l.type
    WHERE t.typtype = 'd'
), based AS (
    SELECT
        l.attnum, bool_or(t.typtype = 'd' AND t.typnotnull) AS is_not_null,
        (array_agg(l.type ORDER BY l.depth DESC))[1] AS base,
        (array_agg(l.modifier ORDER BY l.depth DESC))[1] AS modifier
    FROM layers AS l JOIN pg_type AS t ON t.oid = l.type
    GROUP BY l.attnum
)
SELECT
    a.attname::text AS name, quote_ident(a.attname) AS quoted,
    format_type(a.atttypid, a.atttypmod) AS type, t.typname::text AS base,
    t.typcategory::text AS category,
    CASE WHEN t.typname IN ('varchar', 'bpchar') AND b.modifier > 4 THEN b.modifier - 4 END AS length,
    a.attnotnull OR b.is_not_null AS is_not_null,
    a.attgenerated <> '' OR a.attidentity = 'a' AS is_generated,
    a.attgenerated = 'v' AS is_virtual,
    CASE WHEN a.attgenerated = '' THEN pg_get_expr(d.adbin, d.adrelid) END AS "default",
    ARRAY(
        SELECT e.enumlabel::text FROM pg_enum AS e
        WHERE e.enumtypid = t.oid
        ORDER BY e.enumsortorder
    ) AS labels,
    format_type(t.oid, NULL) AS below
FROM based AS b
JOIN pg_attribute AS a ON a.attrelid = $1::int8::oid AND a.attnum = b.attnum
JOIN pg_type AS t ON t.oid = b.base
LEFT JOIN pg_attrdef AS d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
ORDER BY a.attnum
