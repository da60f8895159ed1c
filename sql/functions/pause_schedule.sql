-- pause_schedule: its ticks do not happen until resume_schedule; false: it was paused already, or
-- there is none.
CREATE OR REPLACE FUNCTION hybrid_runner.pause_schedule(name text) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    IF (hybrid_runner.own_schedule(pause_schedule.name)).name IS NULL THEN
        RETURN false; -- somebody else may make it just now
    END IF;
    UPDATE hybrid_runner.schedules AS s SET paused_at = clock_timestamp()
    WHERE s.name = pause_schedule.name AND s.paused_at IS NULL;
    RETURN FOUND;
END
$$;
