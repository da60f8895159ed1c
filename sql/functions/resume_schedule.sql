-- resume_schedule: it fires again, from its next tick on; false: it was not paused, or there is
-- none.
CREATE OR REPLACE FUNCTION hybrid_runner.resume_schedule(name text) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    IF (hybrid_runner.own_schedule(resume_schedule.name)).name IS NULL THEN
        RETURN false; -- somebody else may make it just now
    END IF;
    UPDATE hybrid_runner.schedules AS s SET paused_at = NULL
    WHERE s.name = resume_schedule.name AND s.paused_at IS NOT NULL;
    RETURN FOUND;
END
$$;
