-- row_plans: whether rows of an attached table are found without reading all of it, and how many
--   there are: (rows, is_scan, may_scan).
-- $1 int4 source
-- odd: a table that was never analyzed has no number of rows (-1), and is small or new.
SELECT
    (
        SELECT coalesce(sum(c.reltuples) FILTER (WHERE c.reltuples > 0), 0)
        FROM pg_catalog.pg_class AS c
        WHERE c.oid = s.relation OR c.oid IN (SELECT i.inhrelid FROM pg_catalog.pg_inherits AS i WHERE i.inhparent = s.relation)
    )::float8 AS rows,
    EXISTS (
        SELECT
        FROM hybrid_runner.rows_of_source($1, 'plans', NULL, NULL) AS p
        CROSS JOIN LATERAL jsonb_path_query(p.fresh::jsonb, 'strict $.** ? (@."Node Type" == "Seq Scan")') AS n (node)
        WHERE n.node ->> 'Alias' LIKE 'new%'
    ) AS is_scan,
    coalesce((s.definition ->> 'scan')::boolean, false) AS may_scan
FROM hybrid_runner.sources AS s
WHERE s.id = $1
