-- find_statements: the session finds pg_stat_statements, in whichever schema it is.
SELECT set_config('search_path', format('pg_catalog, %I, pg_temp', n.nspname), false)
FROM pg_extension AS e JOIN pg_namespace AS n ON n.oid = e.extnamespace
WHERE e.extname = 'pg_stat_statements'
