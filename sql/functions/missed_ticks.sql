-- missed_ticks: for fire_schedule: what to do about the ticks of a schedule that are due.
-- Missed is what is due although a later one is due as well, or since more than a minute: nobody
-- was there to fire it. What is older than catch_up is dropped.
CREATE OR REPLACE FUNCTION hybrid_runner.missed_ticks(
    its hybrid_runner.schedules, moment timestamptz, OUT wanted timestamptz[], OUT weight integer,
    OUT is_missed boolean, OUT dropped bigint, OUT ticked_until timestamptz
)
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    due timestamptz := its.next_at;
    in_time timestamptz := moment - interval '1 minute';
    last timestamptz;
    most integer := 1000;
BEGIN
    weight := 1;
    dropped := 0;
    ticked_until := due;
    its.ticked_until := due;
    its.last_tick := due;
    is_missed := due < in_time OR coalesce(hybrid_runner.tick_after(its) <= moment, false);
    IF NOT is_missed THEN
        wanted := ARRAY[due];
        RETURN;
    END IF;
    ticked_until := moment;
    IF its.missed = 'all' THEN -- 64 MiB of payloads at once are enough
        most := least(most, 67108864 / octet_length(its.payload::text));
    END IF;
    wanted := hybrid_runner.recent_ticks(
        its, greatest(due, least(moment - its.catch_up, in_time)), moment, most);
    last := wanted[cardinality(wanted)];
    IF its.missed = 'none' THEN
        is_missed := false;
        wanted := CASE WHEN last >= in_time THEN ARRAY[last] ELSE '{}' END;
    ELSIF its.missed = 'one' AND last IS NOT NULL THEN
        weight := cardinality(wanted);
        wanted := ARRAY[last];
        dropped := hybrid_runner.count_ticks(its, due, last) - (weight - 1);
        RETURN;
    END IF;
    dropped := hybrid_runner.count_ticks(
        its, due, coalesce(wanted[1], moment + interval '1 microsecond'));
END
$$;
