-- describe_schema: whether whoever asks may use the schema hybrid_runner at all, and whose it is.
SELECT
    has_schema_privilege(n.oid, 'USAGE') AS is_reached, current_user::text AS role,
    pg_get_userbyid(n.nspowner)::text AS owner
FROM pg_namespace AS n
WHERE n.nspname = 'hybrid_runner'
