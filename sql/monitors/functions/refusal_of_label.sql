-- refusal_of_label: what is wrong with the value of a label, in one line; NULL: nothing. Nested
-- ones, and numbers beyond a double, no page could show.
CREATE OR REPLACE FUNCTION hybrid_monitors.refusal_of_label(place text, value jsonb) RETURNS text
LANGUAGE plpgsql IMMUTABLE SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    IF jsonb_typeof(value) NOT IN ('string', 'number', 'boolean') THEN
        RETURN place || ' must be a text, a number or a boolean';
    ELSIF jsonb_typeof(value) = 'string' AND char_length(value #>> '{}') > 200 THEN
        RETURN place || ' has more than 200 characters: make it shorter';
    -- Python reads no whole number of 4301 digits, and JSON elsewhere none beyond a double.
    ELSIF jsonb_typeof(value) = 'number' AND abs((value #>> '{}')::numeric) > 1e15 THEN
        RETURN place || ' must be between -1e15 and 1e15';
    END IF;
    RETURN NULL;
END
$$;
