-- find_runner_owner: the role that owns the schema hybrid_runner.
SELECT pg_get_userbyid(n.nspowner)::text AS owner
FROM pg_catalog.pg_namespace AS n
WHERE n.nspname = 'hybrid_runner'
