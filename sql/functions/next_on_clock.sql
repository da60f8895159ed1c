-- next_on_clock: the first time on a clock, from this one on, that the fields of a cron expression
-- name, as if no clock were ever changed. NULL: there is none, such as 30 February.
CREATE OR REPLACE FUNCTION hybrid_runner.next_on_clock(
    clock pg_catalog.timestamp, minutes integer[], hours integer[], days integer[], months integer[],
    weekdays integer[], either_will_do boolean
) RETURNS pg_catalog.timestamp
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE
AS $$
DECLARE
    day date := clock::date;
    -- 29 February on a given weekday, across a year like 2100: forty years. Most days are passed by
    -- month.
    last date := day + 14976;
    from_hour integer := extract(hour FROM clock);
    from_minute integer := extract(minute FROM clock);
    are_plain boolean := days[pg_catalog.cardinality(days)] <= 31
        AND weekdays[pg_catalog.cardinality(weekdays)] <= 6;
    is_on boolean;
    at_hour integer;
    at_minute integer;
BEGIN
    IF NOT either_will_do AND days[1] > 29 AND days[1] <= 31 AND NOT months && ARRAY[1, 3, 5, 7, 8, 10, 12]
        AND (days[1] = 31 OR NOT months && ARRAY[4, 6, 9, 11]) THEN
        RETURN NULL;
    END IF;
    WHILE day <= last LOOP
        IF NOT extract(month FROM day)::integer = ANY (months) THEN
            day := (pg_catalog.date_trunc('month', day::pg_catalog.timestamp) + interval '1 month')::date;
            from_hour := 0;
            from_minute := 0;
            CONTINUE;
        END IF;
        is_on := CASE
            WHEN NOT are_plain THEN hybrid_runner.is_cron_day(day, days, weekdays, either_will_do)
            WHEN either_will_do THEN extract(day FROM day)::integer = ANY (days)
                OR extract(dow FROM day)::integer = ANY (weekdays)
            ELSE extract(day FROM day)::integer = ANY (days)
                AND extract(dow FROM day)::integer = ANY (weekdays)
        END;
        IF is_on THEN
            FOREACH at_hour IN ARRAY hours LOOP
                CONTINUE WHEN at_hour < from_hour;
                IF at_hour > from_hour THEN
                    from_minute := 0;
                END IF;
                CONTINUE WHEN minutes[pg_catalog.cardinality(minutes)] < from_minute;
                FOREACH at_minute IN ARRAY minutes LOOP
                    EXIT WHEN at_minute >= from_minute;
                END LOOP;
                RETURN day + pg_catalog.make_time(at_hour, at_minute, 0);
            END LOOP;
        END IF;
        day := day + 1;
        from_hour := 0;
        from_minute := 0;
    END LOOP;
    RETURN NULL;
END
$$;
