-- cron_ticks: the first times after `since`, and not after `until`, at which a cron expression
-- fires in a time zone, at most so many. Where clocks are changed it does as Debian's cron: a fixed
-- time that is skipped fires once, as the clock jumps; one that comes twice fires the first time;
-- with a star in minutes or hours real time counts.
CREATE OR REPLACE FUNCTION hybrid_runner.cron_ticks(
    cron text, zone text, since timestamptz, until timestamptz, most integer
) RETURNS timestamptz[]
LANGUAGE plpgsql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp
SET plan_cache_mode = 'force_generic_plan'
AS $$
DECLARE
    f record;
    ticks timestamptz[] := '{}';
    -- the last one found: the next is after it
    last timestamptz := greatest(cron_ticks.since, timestamptz '1970-01-01 UTC');
    earliest timestamptz;
    -- what the clock shows: no zone is meant
    clock pg_catalog.timestamp;
    wanted pg_catalog.timestamp;
    tick timestamptz;
    -- when the clock is set back, if that is near
    turn timestamptz;
    back interval;
    near integer;
    far integer;
BEGIN
    SELECT c.minutes, c.hours, c.days, c.months, c.weekdays, c.either_will_do, c.is_real_time
    INTO f FROM hybrid_runner.read_cron(cron_ticks.cron) AS c;
    IF NOT isfinite(last) OR last >= timestamptz '9900-01-01 UTC' THEN
        RETURN ticks;
    END IF;
    WHILE cardinality(ticks) < cron_ticks.most LOOP
        earliest := date_bin('1 minute', last, timestamptz '1970-01-01 UTC') + interval '1 minute';
        turn := NULL;
        clock := timezone(zone, earliest);
        IF f.is_real_time THEN
            IF timezone(zone, earliest + interval '3 hours') - clock < interval '3 hours' THEN
                -- The clock is set back soon, and some of its times come again: the minute of that.
                near := 0;
                far := 180;
                WHILE far - near > 1 LOOP
                    IF timezone(zone, earliest + make_interval(mins => (near + far) / 2)) - clock
                        < make_interval(mins => (near + far) / 2) THEN
                        far := (near + far) / 2;
                    ELSE
                        near := (near + far) / 2;
                    END IF;
                END LOOP;
                turn := earliest + make_interval(mins => far);
            END IF;
        ELSE
            -- One minute on the wall clock: a minute of time may pass a skipped hour.
            clock := date_trunc('minute', timezone(zone, last)) + interval '1 minute';
        END IF;
        LOOP
            wanted := hybrid_runner.next_on_clock(
                clock, f.minutes, f.hours, f.days, f.months, f.weekdays, f.either_will_do);
            IF wanted IS NULL THEN
                RETURN ticks;
            END IF;
            IF turn IS NOT NULL THEN
                tick := earliest + (wanted - clock);
                IF tick >= turn THEN -- none before it
                    last := turn - interval '1 minute';
                    tick := NULL;
                END IF;
                EXIT;
            END IF;
            tick := timezone(zone, wanted);
            IF timezone(zone, tick) <> wanted THEN
                -- The clock never shows it. (Apia has skipped a whole day.)
                IF NOT f.is_real_time THEN
                    near := -1560;
                    far := 0;
                    WHILE far - near > 1 LOOP
                        IF timezone(zone, tick + make_interval(mins => (near + far) / 2)) > wanted THEN
                            far := (near + far) / 2;
                        ELSE
                            near := (near + far) / 2;
                        END IF;
                    END LOOP;
                    tick := tick + make_interval(mins => far);
                    EXIT WHEN tick > last;
                END IF;
            ELSE
                -- Postgres takes the second of two: was there one before?
                back := timezone(zone, tick - interval '3 hours') - wanted + interval '3 hours';
                IF back > interval '0' AND timezone(zone, tick - back) = wanted
                    AND (tick - back >= earliest OR NOT f.is_real_time) THEN
                    tick := tick - back;
                END IF;
                EXIT WHEN tick > last;
            END IF;
            clock := wanted + interval '1 minute';
        END LOOP;
        CONTINUE WHEN tick IS NULL;
        IF tick > cron_ticks.until THEN
            RETURN ticks;
        END IF;
        ticks := ticks || tick;
        last := tick;
    END LOOP;
    RETURN ticks;
END
$$;
