-- next_tick: how long until a schedule can fire, less than zero if it should have; NULL: none ever
-- will as it is. Without `past` those count alone that are not due yet: somebody's open transaction
-- may hold what is due, and nobody is to look for the others in vain.
CREATE OR REPLACE FUNCTION hybrid_runner.next_tick(past boolean DEFAULT true) RETURNS interval
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off
AS $$
DECLARE
    coming timestamptz;
    since timestamptz := CASE WHEN next_tick.past THEN '-infinity' ELSE hybrid_runner.tick_clock() END;
BEGIN
    IF NOT EXISTS (SELECT FROM hybrid_runner.schedules) THEN
        RETURN NULL;
    END IF;
    IF next_tick.past AND EXISTS (
        SELECT FROM hybrid_runner.schedules AS s
        WHERE s.waiting_ticks IS NOT NULL AND s.paused_at IS NULL
            AND NOT EXISTS (SELECT FROM hybrid_runner.jobs AS j WHERE j.schedule = s.name)
            AND (NOT s.declared OR s.name IN (SELECT hybrid_runner.declared_now()))
    ) THEN
        RETURN interval '0';
    END IF;
    SELECT s.next_at INTO coming
    FROM hybrid_runner.schedules AS s
    WHERE s.paused_at IS NULL AND s.next_at > since
        AND (NOT s.declared OR s.name IN (SELECT hybrid_runner.declared_now()))
    ORDER BY s.next_at
    LIMIT 1;
    RETURN coming - hybrid_runner.tick_clock();
END
$$;
