-- describe_triggers: the triggers that an UPDATE of a table may fire and that are not ours.
-- $1 int8 oid
SELECT
    t.tgname::text AS name,
    ARRAY(
        SELECT a.attname::text FROM pg_attribute AS a
        WHERE a.attrelid = t.tgrelid AND a.attnum = ANY (t.tgattr::int2[])
        ORDER BY a.attnum
    ) AS columns,
    t.tginitdeferred AS is_deferred
FROM pg_trigger AS t
JOIN pg_proc AS p ON p.oid = t.tgfoid
WHERE t.tgrelid = $1::int8::oid AND NOT t.tgisinternal AND t.tgenabled <> 'D'
    AND t.tgtype & 16 > 0 AND p.pronamespace <> to_regnamespace('hybrid_runner')
ORDER BY t.tgname
