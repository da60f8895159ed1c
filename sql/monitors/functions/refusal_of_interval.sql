-- refusal_of_interval: what is wrong with a length of time that is to be between two others, in
-- one line; NULL: nothing. Months and days, which have no fixed length, are refused besides.
CREATE OR REPLACE FUNCTION hybrid_monitors.refusal_of_interval(
    place text, value interval, lowest interval, highest interval, words text
) RETURNS text
LANGUAGE plpgsql IMMUTABLE SET search_path = pg_catalog, pg_temp SET intervalstyle = 'postgres'
AS $$
BEGIN
    IF (value BETWEEN lowest AND highest) IS NOT TRUE THEN
        RETURN format('%s must be between %s, not %s', place, words, coalesce(value::text, 'NULL'));
    ELSIF extract(year FROM value) <> 0 OR extract(month FROM value) <> 0 THEN
        RETURN format('%s must be written without months, not %s', place, value);
    ELSIF abs(extract(day FROM value)) > extract(day FROM highest) THEN
        RETURN format('%s must be written without days, not %s', place, value);
    END IF;
    RETURN NULL;
END
$$;
