-- describe_expression: what Postgres made of an expression over a table, read off the rule of a
--   view that has it.
-- $1 text view, $2 int8 table_oid
-- odd: the rule's text escapes names, so what follows a backslash is no word of its own.
WITH rule AS MATERIALIZED (
    SELECT r.oid, r.ev_class, regexp_replace(r.ev_action::text, '\\.', '', 'g') AS action
    FROM pg_rewrite AS r
    WHERE r.ev_class = $1::text::regclass
), calls AS MATERIALIZED (
    SELECT
        CASE
            WHEN n.nspname = 'pg_catalog' THEN p.proname::text
            ELSE format('%I.%I', n.nspname, p.proname)
        END || '()' AS name,
        p.oid::regprocedure::text AS signature, has_function_privilege('public', p.oid, 'EXECUTE') AS is_shared,
        p.provolatile AS volatility, bool_or(f.is_written) AS is_written,
        bool_or(f.is_cast) AS is_cast, format_type(p.prorettype, NULL) AS result
    FROM (
        SELECT m[1]::oid AS oid, false AS is_written, false AS is_cast
        FROM rule AS r, regexp_matches(r.action, ':(?:op)?funcid (\d+)', 'g') AS m
        UNION ALL
        SELECT m[1]::oid, m[2] = '0', m[2] IN ('1', '2')
        FROM rule AS r, regexp_matches(
            r.action, '\{FUNCEXPR :funcid (\d+) [^{}]*?:funcformat (\d)', 'g'
        ) AS m
    ) AS f
    JOIN pg_proc AS p ON p.oid = f.oid
    JOIN pg_namespace AS n ON n.oid = p.pronamespace
    GROUP BY p.oid, n.nspname
)
SELECT
    pg_get_viewdef(r.ev_class) AS definition,
    ARRAY(
        SELECT DISTINCT a.attname::text
        FROM pg_depend AS d
        JOIN pg_attribute AS a ON a.attrelid = d.refobjid AND a.attnum = d.refobjsubid
        WHERE d.classid = 'pg_rewrite'::regclass AND d.objid = r.oid
            AND d.refclassid = 'pg_class'::regclass AND d.refobjid = $2::int8::oid
            AND d.refobjsubid > 0
        ORDER BY a.attname::text
    ) AS columns,
    CASE
        WHEN r.action LIKE '%{SUBLINK %' THEN 'a sub-select'
        WHEN r.action LIKE '%{AGGREF %' OR r.action LIKE '%{GROUPINGFUNC %' THEN 'an aggregate'
        WHEN r.action LIKE '%{WINDOWFUNC %' THEN 'a window function'
        WHEN r.action ~ ':(?:func|op)retset true' THEN 'a function that returns rows'
        WHEN r.action ~ '\{SQLVALUEFUNCTION :op (9|1\d)' THEN 'the name of whoever asks'
        ELSE 'the volatile function ' || (
            SELECT min(c.name) FROM calls AS c WHERE c.volatility = 'v'
        )
    END AS forbidden,
    ARRAY(
        SELECT c.name FROM calls AS c WHERE c.volatility = 's' AND c.is_written
        UNION
        SELECT 'current_timestamp' WHERE r.action LIKE '%{SQLVALUEFUNCTION %'
        ORDER BY 1
    ) AS changing,
    ARRAY(
        SELECT DISTINCT c.result FROM calls AS c WHERE c.volatility = 's' AND c.is_cast ORDER BY c.result
    ) AS by_session,
    ARRAY(
        SELECT c.signature FROM calls AS c WHERE NOT c.is_shared ORDER BY c.signature
    ) AS withheld
FROM rule AS r
