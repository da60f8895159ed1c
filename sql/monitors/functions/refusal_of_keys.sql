-- refusal_of_keys: what is wrong with a JSON value that is to be an object with no keys but these,
-- in one line; NULL: nothing.
CREATE OR REPLACE FUNCTION hybrid_monitors.refusal_of_keys(
    place text, value jsonb, known text[]
) RETURNS text
LANGUAGE plpgsql IMMUTABLE SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    unknown text;
BEGIN
    IF jsonb_typeof(value) <> 'object' THEN
        RETURN place || ' must be an object';
    END IF;
    SELECT min(k.key COLLATE "C") INTO unknown
    FROM jsonb_object_keys(value) AS k (key) WHERE k.key <> ALL (known);
    IF unknown IS NULL THEN
        RETURN NULL;
    END IF;
    RETURN format('%s.%s is unknown: use one of %s', place, left(unknown, 100),
        array_to_string(known, ', '));
END
$$;
