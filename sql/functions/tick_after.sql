-- tick_after: the first tick of a schedule that is after `ticked_until`; NULL: there is none.
-- A schedule without starts_at counts `every` from a Monday long ago, so that it has the same ticks
-- whenever it was made: each full hour for an hour.
CREATE OR REPLACE FUNCTION hybrid_runner.tick_after(its hybrid_runner.schedules) RETURNS timestamptz
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    start timestamptz;
    step double precision;
    tick timestamptz;
BEGIN
    IF its.at IS NOT NULL THEN
        -- One that was over when the schedule was made is late, not forgotten.
        tick := CASE WHEN its.last_tick IS NULL OR its.last_tick < its.at THEN its.at END;
    ELSIF its.cron IS NOT NULL THEN
        tick := (hybrid_runner.cron_ticks(
            its.cron, its.timezone, greatest(its.ticked_until, its.starts_at - interval '1 microsecond'),
            its.ends_at, 1))[1];
    ELSE
        start := coalesce(its.starts_at, timestamptz '2001-01-01 UTC');
        step := extract(epoch FROM its.every);
        tick := CASE WHEN start > its.ticked_until THEN start ELSE start + make_interval(secs => step * (
            floor(extract(epoch FROM its.ticked_until - start)::float8 / step) + 1)) END;
        -- Fractions that cannot be written exactly may lead back to the same tick.
        IF tick <= its.ticked_until THEN
            tick := tick + make_interval(secs => step);
        END IF;
    END IF;
    RETURN CASE WHEN tick <= coalesce(its.ends_at, 'infinity') AND tick < timestamptz '9900-01-01 UTC'
        THEN tick END;
END
$$;
