-- refusal_of_name: what is wrong with a name, in one line; NULL: nothing.
CREATE OR REPLACE FUNCTION hybrid_monitors.refusal_of_name(place text, name text) RETURNS text
LANGUAGE plpgsql IMMUTABLE SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    IF name IS NULL OR char_length(name) NOT BETWEEN 1 AND 200 THEN
        RETURN format('%s must be 1 to 200 characters, not %s', place,
            coalesce(char_length(name)::text, 'NULL'));
    ELSIF name ~ '[[:cntrl:]\u0080-\u009f\u200e\u200f\u2028-\u202e\u2066-\u2069]' THEN
        RETURN place || ' has a control character in it: leave it out';
    ELSIF name ~ '^\s|\s$' THEN
        RETURN place || ' begins or ends with a blank: leave it out';
    END IF;
    RETURN NULL;
END
$$;
