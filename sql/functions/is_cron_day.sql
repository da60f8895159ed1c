-- is_cron_day: whether a day is one that these fields of a cron expression name, for those with
-- `L`, `W` or `#` in them, whose numbers are in read_cron_field.sql.
CREATE OR REPLACE FUNCTION hybrid_runner.is_cron_day(
    day date, days integer[], weekdays integer[], either_will_do boolean
) RETURNS boolean
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    number integer := extract(day FROM day);
    weekday integer := extract(dow FROM day);
    length integer := extract(day FROM (date_trunc('month', day) + interval '1 month' - interval '1 day'));
    on_day boolean;
    on_weekday boolean;
BEGIN
    on_day := number = ANY (days) OR (32 = ANY (days) AND number = length)
        OR (33 = ANY (days) AND weekday BETWEEN 1 AND 5
            AND (number = length OR weekday = 5 AND number >= length - 2));
    -- The working day nearest to the 15th is that day, or the Friday before, or the Monday after;
    -- one of the same month.
    IF NOT on_day AND weekday BETWEEN 1 AND 5 THEN
        on_day := 100 + number = ANY (days)
            OR weekday = 5 AND number < length AND 101 + number = ANY (days)
            OR weekday = 5 AND number + 2 = length AND 102 + number = ANY (days)
            OR weekday = 1 AND number > 1 AND 99 + number = ANY (days)
            OR weekday = 1 AND number = 3 AND 101 = ANY (days);
    END IF;
    on_weekday := weekday = ANY (weekdays) OR 10 * ((number + 6) / 7) + weekday = ANY (weekdays)
        OR (90 + weekday = ANY (weekdays) AND number + 7 > length);
    RETURN CASE WHEN either_will_do THEN on_day OR on_weekday ELSE on_day AND on_weekday END;
END
$$;
