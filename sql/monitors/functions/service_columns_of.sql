-- service_columns_of: the columns of a service that are given as JSON; NULL where they are not.
CREATE OR REPLACE FUNCTION hybrid_monitors.service_columns_of(columns jsonb)
RETURNS hybrid_monitors.service_columns
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_column
DECLARE
    k jsonb := jsonb_strip_nulls(columns - ARRAY['mapping', 'expect', 'headers', 'labels']);
    c hybrid_monitors.service_columns;
BEGIN
    c := jsonb_populate_record(c, k - ARRAY['every', 'timeout', 'depends_on']);
    c.every := make_interval(secs => (k ->> 'every')::double precision);
    c.timeout := make_interval(secs => (k ->> 'timeout')::double precision);
    c.mapping := nullif(columns -> 'mapping', 'null');
    c.expect := nullif(columns -> 'expect', 'null');
    c.headers := nullif(columns -> 'headers', 'null');
    c.labels := nullif(columns -> 'labels', 'null');
    IF k ? 'depends_on' THEN
        SELECT s.id INTO c.depends_on FROM hybrid_monitors.services AS s
        WHERE s.name = k ->> 'depends_on';
        IF NOT FOUND THEN
            RAISE EXCEPTION 'services.depends_on must be another service, and there is none called %',
                quote_literal(left(k ->> 'depends_on', 200))
                USING ERRCODE = 'invalid_parameter_value';
        END IF;
    END IF;
    RETURN c;
END
$$;
