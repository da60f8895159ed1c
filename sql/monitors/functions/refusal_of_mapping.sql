-- refusal_of_mapping: what is wrong with a mapping, in one line; NULL: nothing.
CREATE OR REPLACE FUNCTION hybrid_monitors.refusal_of_mapping(mapping jsonb) RETURNS text
LANGUAGE plpgsql IMMUTABLE STRICT SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    known CONSTANT text[] := ARRAY[
        'name', 'healthy', 'type', 'description', 'impact', 'state', 'code', 'latency', 'skipped',
        'contact', 'checkDetails', 'error', 'errorMessage', 'lastChecked'
    ];
    root jsonb := mapping -> 'root';
    fields jsonb := mapping -> 'fields';
    field text;
    place text;
    value jsonb;
    refusal text;
BEGIN
    IF jsonb_typeof(mapping) <> 'object' THEN
        RETURN 'mapping must be an object';
    ELSIF octet_length(mapping::text) > 8192 THEN
        RETURN 'mapping has more than 8192 bytes of JSON: make it shorter';
    END IF;
    refusal := hybrid_monitors.refusal_of_keys('mapping', mapping, ARRAY['root', 'fields']);
    IF refusal IS NULL AND root IS NOT NULL AND jsonb_typeof(root) <> 'string' THEN
        refusal := 'mapping.root must be a path, such as status or checks.state';
    ELSIF refusal IS NULL AND root IS NOT NULL AND root <> '""' THEN
        refusal := hybrid_monitors.refusal_of_path('mapping.root', root #>> '{}');
    END IF;
    IF refusal IS NULL AND fields IS NULL THEN
        refusal := 'mapping.fields is missing';
    END IF;
    refusal := coalesce(refusal, hybrid_monitors.refusal_of_keys('mapping.fields', fields, known));
    IF refusal IS NOT NULL THEN
        RETURN refusal;
    END IF;
    FOREACH field IN ARRAY known LOOP
        place := 'mapping.fields.' || field;
        value := fields -> field;
        IF value IS NULL THEN
            IF field IN ('name', 'healthy') THEN
                RETURN place || ' is missing';
            END IF;
        ELSIF jsonb_typeof(value) = 'string' THEN
            refusal := hybrid_monitors.refusal_of_path(place, value #>> '{}');
        ELSIF field NOT IN ('healthy', 'skipped') THEN
            refusal := place || ' must be a path, such as status or checks.state';
        ELSIF jsonb_typeof(value) <> 'object' THEN
            refusal := place || ' must be a path or {"field": path, "equals": value}';
        ELSE
            refusal := coalesce(
                hybrid_monitors.refusal_of_keys(place, value, ARRAY['field', 'equals']),
                CASE
                    WHEN NOT value ? 'field' THEN place || '.field is missing'
                    WHEN jsonb_typeof(value -> 'field') <> 'string'
                        THEN place || '.field must be a path, such as status or checks.state'
                    ELSE hybrid_monitors.refusal_of_path(place || '.field', value ->> 'field')
                END,
                CASE WHEN NOT value ? 'equals' THEN place || '.equals is missing'
                    ELSE hybrid_monitors.refusal_of_equals(place || '.equals', value -> 'equals') END
            );
        END IF;
        IF refusal IS NOT NULL THEN
            RETURN refusal;
        END IF;
    END LOOP;
    RETURN NULL;
END
$$;
