-- is_short_text: whether a JSON value is a text of 1 to 200 characters.
CREATE OR REPLACE FUNCTION hybrid_monitors.is_short_text(value jsonb) RETURNS boolean
LANGUAGE sql IMMUTABLE
AS $$
    SELECT pg_catalog.jsonb_typeof(value) = 'string' AND pg_catalog.char_length(value #>> '{}') BETWEEN 1 AND 200
$$;
