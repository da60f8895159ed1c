-- key_of: a key made of a job's arguments: of these members of its payload, or of all of it; the
-- same as hybrid_runner.key_of makes in Python.
-- What is digested is the text that Postgres prints, without zeros at the end of a fraction: 1, 1.0
-- and 1e0 are one number, and neither the order of members nor that of the names counts. A member
-- that is not there is as one that is null.
CREATE OR REPLACE FUNCTION hybrid_runner.key_of(
    kind text, payload jsonb, VARIADIC names text[] DEFAULT '{}'
) RETURNS text
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    wrong text := CASE
        WHEN kind IS NULL OR payload IS NULL THEN 'a key is made of a kind and a payload, not of NULL'
        WHEN names IS NULL OR array_position(names, NULL) IS NOT NULL OR '' = ANY (names)
            THEN 'a name of a member must not be empty'
        WHEN cardinality(names) > 0 AND jsonb_typeof(payload) <> 'object'
            THEN format('payload must be an object to take a key of its members, not %s',
                jsonb_typeof(payload))
        WHEN cardinality(names) > 0 AND NOT payload ?| names
            THEN format('payload has none of these members: %s',
                left(array_to_string(names, ', '), 200))
    END;
    value jsonb := payload;
BEGIN
    IF wrong IS NOT NULL THEN
        RAISE EXCEPTION '%', wrong USING ERRCODE = 'invalid_parameter_value';
    END IF;
    IF cardinality(names) > 0 THEN
        SELECT jsonb_object_agg(n.name, coalesce(payload -> n.name, 'null'))
        INTO value
        FROM unnest(names) AS n (name);
    END IF;
    RETURN kind || ':' || encode(sha256(convert_to(
        -- texts are left as they are, and what is a number loses its last zeros
        regexp_replace(value::text, '("(?:[^"\\]|\\.)*"|\.[0-9]*[1-9])0*|\.0+', '\1', 'g'),
        'UTF8')), 'hex');
END
$$;
