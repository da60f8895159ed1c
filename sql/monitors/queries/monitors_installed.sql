-- monitors_installed: what was recorded of the functions and grants of monitors, and the roles of
--   today.
SELECT
    obj_description(to_regclass('hybrid_monitors.migrations')::oid, 'pg_class') AS recorded,
    ARRAY(
        SELECT r.rolname::text FROM pg_roles AS r
        WHERE r.rolname IN (
            'hybrid_monitors_editor', 'hybrid_runner_worker', 'hybrid_runner_reader'
        )
        ORDER BY r.rolname::text COLLATE "C"
    ) AS roles
