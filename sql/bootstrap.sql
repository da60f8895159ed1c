-- bootstrap: the schema and the list of applied migrations; made by hand beforehand, it needs no
-- right on the database.
DO $$
BEGIN
    IF to_regnamespace('hybrid_runner') IS NULL THEN
        CREATE SCHEMA hybrid_runner;
    END IF;
    IF to_regclass('hybrid_runner.migrations') IS NULL THEN
        CREATE TABLE hybrid_runner.migrations (
            version integer PRIMARY KEY,
            name text NOT NULL,
            -- of its text: which tells it from another of the same number, made by a checkout that
            -- was never released
            checksum text NOT NULL,
            applied_at timestamptz NOT NULL DEFAULT clock_timestamp()
        );
    END IF;
END
$$;
