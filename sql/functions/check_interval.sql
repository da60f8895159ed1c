-- check_interval: an error unless an interval is in these bounds and means the same everywhere: a
-- month has no fixed length, and a day has 24 hours here. NULL is fine.
CREATE OR REPLACE FUNCTION hybrid_runner.check_interval(
    field text, given interval, lowest interval, highest interval, bounds text
) RETURNS void
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    IF extract(year FROM given) <> 0 OR extract(month FROM given) <> 0 THEN
        RAISE EXCEPTION '%: a month has no fixed length: give days%', field,
            CASE field WHEN 'every' THEN ', or cron ''0 0 1 * *''' ELSE '' END
            USING ERRCODE = 'invalid_parameter_value';
    END IF;
    -- Days and hours of opposite signs add up to little and reach far. (Postgres 17 and newer have
    -- infinite ones, which are neither.)
    IF given < lowest OR given > highest OR extract(day FROM given) NOT BETWEEN 0 AND 3650
        OR date_part('epoch', given) - 86400 * extract(day FROM given) < 0 THEN
        RAISE EXCEPTION '% must be %, not %', field, bounds, left(given::text, 40)
            USING ERRCODE = 'invalid_parameter_value';
    END IF;
END
$$;
