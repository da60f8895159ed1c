-- bootstrap: the schema of monitors and the list of its applied migrations, and a lock for whoever
-- migrates.
-- It belongs to the owner of hybrid_runner, since its functions write jobs and signals there.
DO $$
DECLARE
    runner record;
    stranger record;
BEGIN
    SELECT r.oid, r.rolname, r.rolsuper INTO runner
    FROM pg_namespace AS n JOIN pg_roles AS r ON r.oid = n.nspowner
    WHERE n.nspname = 'hybrid_runner';
    IF runner.rolname <> current_user
        AND NOT (runner.rolsuper AND current_setting('is_superuser')::boolean) THEN
        RAISE EXCEPTION
            'must be owner of the schema hybrid_runner, which is %: install monitors as that role',
            runner.rolname
            USING ERRCODE = 'insufficient_privilege';
    END IF;
    BEGIN
        IF to_regnamespace('hybrid_monitors') IS NULL THEN
            CREATE SCHEMA hybrid_monitors;
        END IF;
        IF to_regclass('hybrid_monitors.migrations') IS NULL THEN
            CREATE TABLE hybrid_monitors.migrations (
                version integer PRIMARY KEY,
                name text NOT NULL,
                -- of its text: which tells it from another of the same number
                checksum text NOT NULL,
                applied_at timestamptz NOT NULL DEFAULT clock_timestamp()
            );
        END IF;
    EXCEPTION
        WHEN duplicate_schema OR duplicate_table OR unique_violation THEN
            NULL; -- somebody else migrated at the same moment, and has ended
    END;

    -- As in the schema hybrid_runner: whoever owns them would have the rights of whoever migrates.
    SELECT o.what, r.rolname INTO stranger
    FROM (
        SELECT 'schema hybrid_monitors' AS what, n.nspowner AS role
        FROM pg_namespace AS n WHERE n.nspname = 'hybrid_monitors'
        UNION ALL
        SELECT 'table hybrid_monitors.migrations', c.relowner
        FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
        WHERE n.nspname = 'hybrid_monitors' AND c.relname = 'migrations'
    ) AS o
    JOIN pg_roles AS r ON r.oid = o.role
    WHERE NOT r.rolsuper AND r.rolname <> current_user
    LIMIT 1;
    IF FOUND THEN
        RAISE EXCEPTION
            'the % belongs to role %: migrate as %, or, if it is not yours, drop it',
            stranger.what, stranger.rolname, stranger.rolname
            USING ERRCODE = 'object_not_in_prerequisite_state';
    END IF;

    LOCK TABLE hybrid_monitors.migrations IN SHARE ROW EXCLUSIVE MODE;
END
$$;
