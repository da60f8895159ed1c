-- check_alias: the trigger on aliases that refuses in one line, naming the column.
CREATE OR REPLACE FUNCTION hybrid_monitors.check_alias() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    refusal text := coalesce(
        hybrid_monitors.refusal_of_name('alias', NEW.alias),
        hybrid_monitors.refusal_of_name('canonical_name', NEW.canonical_name));
BEGIN
    IF refusal IS NOT NULL THEN
        RAISE EXCEPTION 'aliases.%', refusal
            USING ERRCODE = 'check_violation', SCHEMA = 'hybrid_monitors', TABLE = 'aliases';
    END IF;
    RETURN NEW;
END
$$;
