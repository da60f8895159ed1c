-- next_ticks_of: the next ticks of a schedule, at most so many, and when the job of each will be
-- due. None while it is paused.
CREATE OR REPLACE FUNCTION hybrid_runner.next_ticks_of(
    name text, most integer DEFAULT 5
) RETURNS TABLE (tick timestamptz, run_at timestamptz)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_column
DECLARE
    its hybrid_runner.schedules;
BEGIN
    SELECT s.* INTO its FROM hybrid_runner.schedules AS s
    WHERE s.name = next_ticks_of.name AND (s.made_by = session_user OR has_column_privilege(
        session_user, 'hybrid_runner.schedules', 'payload', 'SELECT'));
    IF its.paused_at IS NOT NULL THEN
        RETURN;
    END IF;
    FOR place IN 1..least(next_ticks_of.most, 1000) LOOP
        EXIT WHEN its.next_at IS NULL;
        tick := its.next_at;
        run_at := hybrid_runner.jittered(its.name, its.next_at, its.jitter);
        RETURN NEXT;
        its.ticked_until := its.next_at;
        its.last_tick := its.next_at;
        its.next_at := hybrid_runner.tick_after(its);
    END LOOP;
END
$$;
