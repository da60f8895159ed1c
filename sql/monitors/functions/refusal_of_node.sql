-- refusal_of_node: what is wrong with one node of the tree `expect`, or below it, in one line;
-- NULL: nothing. The tree is known to be small and flat.
CREATE OR REPLACE FUNCTION hybrid_monitors.refusal_of_node(place text, node jsonb) RETURNS text
LANGUAGE plpgsql IMMUTABLE SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    known CONSTANT text[] := ARRAY[
        'and', 'or', 'not', 'status', 'header', 'body', 'latency', 'certificate'
    ];
    operator text;
    refusal text;
BEGIN
    IF jsonb_typeof(node) <> 'object' THEN
        RETURN place || ' must be an object';
    END IF;
    SELECT CASE WHEN count(*) = 1 THEN min(k.key) END INTO operator
    FROM jsonb_object_keys(node) AS k (key);
    IF (operator = ANY (known)) IS NOT TRUE THEN
        RETURN format('%s must have exactly one of %s', place, array_to_string(known, ', '));
    END IF;
    place := place || '.' || operator;
    node := node -> operator;
    IF operator = 'not' THEN
        RETURN hybrid_monitors.refusal_of_node(place, node);
    ELSIF operator NOT IN ('and', 'or') THEN
        RETURN hybrid_monitors.refusal_of_leaf(place, operator, node);
    ELSIF jsonb_typeof(node) <> 'array' OR node = '[]' THEN
        RETURN place || ' must be a list of one or more';
    END IF;
    FOR number IN 0..jsonb_array_length(node) - 1 LOOP
        refusal := hybrid_monitors.refusal_of_node(format('%s[%s]', place, number), node -> number);
        IF refusal IS NOT NULL THEN
            RETURN refusal;
        END IF;
    END LOOP;
    RETURN NULL;
END
$$;
