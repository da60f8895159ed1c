-- installed: records of which release the functions and grants of monitors are, the digest of their
-- SQL, and the roles that were there; `migrate` fills in the two words in braces.
DO $$
BEGIN
    EXECUTE format(
        'COMMENT ON TABLE hybrid_monitors.migrations IS %L',
        jsonb_build_object('release', '{release}', 'digest', '{digest}', 'roles', ARRAY(
            SELECT r.rolname::text FROM pg_roles AS r
            WHERE r.rolname IN (
                'hybrid_monitors_editor', 'hybrid_runner_worker', 'hybrid_runner_reader'
            )
            ORDER BY r.rolname::text COLLATE "C"
        ))
    );
END
$$;
