-- bootstrap: the schema and the list of applied migrations, and a lock for whoever migrates; made
-- by hand beforehand, the schema needs no right on the database.
DO $$
DECLARE
    stranger record;
BEGIN
    IF current_setting('server_encoding') <> 'UTF8' THEN
        RAISE EXCEPTION
            'the database % is in %, and hybrid_runner needs UTF8: make one with CREATE DATABASE … TEMPLATE template0 ENCODING ''UTF8''',
            quote_ident(current_database()), current_setting('server_encoding')
            USING ERRCODE = 'feature_not_supported';
    END IF;
    BEGIN
        IF to_regnamespace('hybrid_runner') IS NULL THEN
            CREATE SCHEMA hybrid_runner;
        END IF;
        IF to_regclass('hybrid_runner.migrations') IS NULL THEN
            CREATE TABLE hybrid_runner.migrations (
                version integer PRIMARY KEY,
                name text NOT NULL,
                -- of its text: which tells it from another of the same number, made by a checkout
                -- that was never released
                checksum text NOT NULL,
                applied_at timestamptz NOT NULL DEFAULT clock_timestamp()
            );
        END IF;
    EXCEPTION
        WHEN duplicate_schema OR duplicate_table OR unique_violation THEN
            NULL; -- somebody else migrated at the same moment, and has ended
    END;

    -- Whoever owns them would have the rights of whoever migrates: triggers run what he likes. That
    -- one is a member of the owner says nothing: the owner may have granted it.
    SELECT o.what, r.rolname INTO stranger
    FROM (
        SELECT 'schema hybrid_runner' AS what, n.nspowner AS role
        FROM pg_namespace AS n WHERE n.nspname = 'hybrid_runner'
        UNION ALL
        SELECT 'table hybrid_runner.migrations', c.relowner
        FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
        WHERE n.nspname = 'hybrid_runner' AND c.relname = 'migrations'
    ) AS o
    JOIN pg_roles AS r ON r.oid = o.role
    WHERE NOT r.rolsuper AND r.rolname <> current_user
    LIMIT 1;
    IF FOUND THEN
        RAISE EXCEPTION
            'the % belongs to role %: migrate as %, or, if it is not yours, drop it and CREATE SCHEMA hybrid_runner AUTHORIZATION %',
            stranger.what, stranger.rolname, stranger.rolname, quote_ident(current_user)
            USING ERRCODE = 'object_not_in_prerequisite_state';
    END IF;

    LOCK TABLE hybrid_runner.migrations IN SHARE ROW EXCLUSIVE MODE;
END
$$;
