-- installed: what was recorded of this database's functions and grants, and the roles of today.
SELECT
    obj_description(to_regclass('hybrid_runner.migrations')::oid, 'pg_class') AS recorded,
    ARRAY(
        SELECT r.rolname::text FROM pg_roles AS r
        WHERE r.rolname IN (
            'hybrid_runner_producer', 'hybrid_runner_worker', 'hybrid_runner_reader'
        )
        ORDER BY r.rolname::text COLLATE "C"
    ) AS roles
