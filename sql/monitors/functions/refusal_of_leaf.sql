-- refusal_of_leaf: what is wrong with one comparison of `expect`, in one line; NULL: nothing.
CREATE OR REPLACE FUNCTION hybrid_monitors.refusal_of_leaf(
    place text, what text, leaf jsonb
) RETURNS text
LANGUAGE plpgsql IMMUTABLE SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    subject CONSTANT text := CASE what WHEN 'header' THEN 'name' WHEN 'body' THEN 'path' END;
    known CONSTANT text[] := CASE what
        WHEN 'status' THEN ARRAY['equals', 'above', 'below']
        WHEN 'header' THEN ARRAY['equals', 'contains', 'exists']
        WHEN 'body' THEN ARRAY['equals', 'contains', 'above', 'below', 'exists']
        ELSE ARRAY['above', 'below']
    END;
    a_text CONSTANT text := ' must be a text of 1 to 200 characters';
    comparison text;
    value jsonb;
    there integer := 0;
    refusal text;
BEGIN
    refusal := hybrid_monitors.refusal_of_keys(place, leaf, array_remove(subject || known, NULL));
    IF refusal IS NOT NULL THEN
        RETURN refusal;
    ELSIF what = 'header' AND NOT leaf ? 'name' THEN
        RETURN place || '.name is missing';
    ELSIF what = 'header' AND NOT hybrid_monitors.is_short_text(leaf -> 'name') THEN
        RETURN place || '.name' || a_text;
    ELSIF what = 'body' AND leaf ? 'path' THEN
        refusal := CASE WHEN jsonb_typeof(leaf -> 'path') <> 'string'
            THEN place || '.path must be a path, such as status or checks.state'
            ELSE hybrid_monitors.refusal_of_path(place || '.path', leaf ->> 'path') END;
        IF refusal IS NOT NULL THEN
            RETURN refusal;
        END IF;
    END IF;
    FOREACH comparison IN ARRAY ARRAY['equals', 'contains', 'above', 'below', 'exists'] LOOP
        CONTINUE WHEN NOT leaf ? comparison;
        there := there + 1;
        value := leaf -> comparison;
        refusal := place || '.' || comparison || CASE
            WHEN comparison IN ('above', 'below') OR comparison = 'equals' AND what = 'status' THEN
                CASE WHEN jsonb_typeof(value) <> 'number' THEN ' must be a number'
                    ELSE hybrid_monitors.refusal_of_equals('', value) END
            WHEN comparison = 'exists' THEN
                CASE WHEN jsonb_typeof(value) <> 'boolean' THEN ' must be true or false' END
            WHEN comparison = 'contains' OR what = 'header' THEN
                CASE WHEN NOT hybrid_monitors.is_short_text(value) THEN a_text END
            ELSE hybrid_monitors.refusal_of_equals('', value)
        END;
        IF refusal IS NOT NULL THEN
            RETURN refusal;
        END IF;
    END LOOP;
    IF there <> 1 THEN
        RETURN format('%s must have exactly one of %s', place, array_to_string(known, ', '));
    ELSIF what = 'body' AND NOT leaf ? 'path' AND NOT leaf ? 'contains' THEN
        RETURN place || '.path is missing';
    END IF;
    RETURN NULL;
END
$$;
