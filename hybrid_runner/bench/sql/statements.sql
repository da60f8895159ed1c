-- statements: how many statements this database has run, all but these counts of them.
SELECT coalesce(sum(s.calls), 0)::bigint
FROM pg_stat_statements AS s JOIN pg_database AS d ON d.oid = s.dbid
WHERE d.datname = current_database() AND s.query NOT LIKE '%pg_stat_statements%'
