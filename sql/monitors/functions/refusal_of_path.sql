-- refusal_of_path: what is wrong with a path into an answer, in one line; NULL: nothing.
CREATE OR REPLACE FUNCTION hybrid_monitors.refusal_of_path(place text, path text) RETURNS text
LANGUAGE plpgsql IMMUTABLE STRICT SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    IF path = '' THEN
        RETURN place || ' is empty: write a path, such as status or checks.state';
    ELSIF char_length(path) > 200 THEN
        RETURN place || ' has more than 200 characters: make it shorter';
    ELSIF path = '$key' THEN
        RETURN CASE WHEN place <> 'mapping.fields.name'
            THEN place || ' is $key, which only the name can be: write a path' END;
    ELSIF path LIKE '$.%' OR path LIKE '$[%' THEN
        RETURN NULL;
    ELSIF path LIKE '$%' THEN
        RETURN place || ' begins with $: use $key, or JSONPath, which begins with $. or $[';
    ELSIF path LIKE '.%' OR path LIKE '%.' OR path LIKE '%..%' THEN
        RETURN place || ' has an empty part: write names with one dot between, such as checks.state';
    END IF;
    RETURN NULL;
END
$$;
