-- items_of: a payload as a list of items: an array is one, anything else is its one item.
CREATE OR REPLACE FUNCTION hybrid_runner.items_of(payload jsonb) RETURNS jsonb
LANGUAGE sql IMMUTABLE SET search_path = pg_catalog, pg_temp
AS $$
    SELECT CASE WHEN jsonb_typeof(payload) = 'array' THEN payload ELSE jsonb_build_array(payload) END
$$;
