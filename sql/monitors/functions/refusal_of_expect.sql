-- refusal_of_expect: what is wrong with the tree of what an answer has to be, in one line; NULL:
-- nothing.
-- Walked level by level, which shows depth and number of its parts before anything else of it.
CREATE OR REPLACE FUNCTION hybrid_monitors.refusal_of_expect(expect jsonb) RETURNS text
LANGUAGE plpgsql IMMUTABLE STRICT SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    level jsonb[] := ARRAY[expect];
    deeper jsonb[];
    depth integer := 0;
    parts integer := 0;
BEGIN
    IF jsonb_typeof(expect) <> 'object' THEN
        RETURN 'expect must be an object';
    ELSIF octet_length(expect::text) > 8192 THEN
        RETURN 'expect has more than 8192 bytes of JSON: make it shorter';
    END IF;
    WHILE cardinality(level) > 0 LOOP
        depth := depth + 1;
        parts := parts + cardinality(level);
        IF depth > 8 THEN
            RETURN 'expect is deeper than 8';
        END IF;
        SELECT coalesce(array_agg(c.child), '{}') INTO deeper
        FROM unnest(level) AS n (node)
        CROSS JOIN LATERAL (
            SELECT n.node -> 'not' WHERE jsonb_typeof(n.node) = 'object' AND n.node ? 'not'
            UNION ALL
            SELECT e.child
            FROM (VALUES ('and'), ('or')) AS o (operator)
            CROSS JOIN LATERAL jsonb_array_elements(
                CASE WHEN jsonb_typeof(n.node) = 'object'
                    AND jsonb_typeof(n.node -> o.operator) = 'array'
                    THEN n.node -> o.operator ELSE '[]' END
            ) AS e (child)
        ) AS c (child);
        level := deeper;
    END LOOP;
    IF parts > 50 THEN
        RETURN 'expect has more than 50 parts';
    END IF;
    RETURN hybrid_monitors.refusal_of_node('expect', expect);
END
$$;
