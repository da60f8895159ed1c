-- ring_for_schedules: the trigger on schedules: tell the workers, whose timers wait for the next
-- tick, and who measures them.
CREATE OR REPLACE FUNCTION hybrid_runner.ring_for_schedules() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    IF TG_OP = 'INSERT' THEN
        PERFORM hybrid_runner.keep_schedule_duty();
    END IF;
    PERFORM hybrid_runner.notify_if_room('hybrid_runner.~ticks', '');
    RETURN NULL;
END
$$;
