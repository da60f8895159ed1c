-- unschedule: remove a schedule; false: there is none. Jobs that it has stored are not touched.
CREATE OR REPLACE FUNCTION hybrid_runner.unschedule(name text) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    IF (hybrid_runner.own_schedule(unschedule.name)).name IS NULL THEN
        RETURN false; -- somebody else may make it just now
    END IF;
    DELETE FROM hybrid_runner.schedules AS s WHERE s.name = unschedule.name;
    RETURN FOUND;
END
$$;
