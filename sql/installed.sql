-- installed: records of which release the functions and grants are, the digest of their SQL, and
-- the roles that were there to be granted rights; `migrate` fills in the two words in braces.
-- A comment of a table is read by every role, whatever its rights are.
DO $$
BEGIN
    EXECUTE format(
        'COMMENT ON TABLE hybrid_runner.migrations IS %L',
        jsonb_build_object('release', '{release}', 'digest', '{digest}', 'roles', ARRAY(
            SELECT r.rolname::text FROM pg_roles AS r
            WHERE r.rolname IN (
                'hybrid_runner_producer', 'hybrid_runner_worker', 'hybrid_runner_reader'
            )
            ORDER BY r.rolname::text COLLATE "C"
        ))
    );
END
$$;
