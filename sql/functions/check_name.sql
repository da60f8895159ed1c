-- check_name: an error unless this can be the name of a schedule, a kind or a queue.
CREATE OR REPLACE FUNCTION hybrid_runner.check_name(field text, given text, most integer) RETURNS void
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    IF given IS NULL OR octet_length(given) > most OR given !~ '^[A-Za-z0-9_][A-Za-z0-9_.:/-]*$' THEN
        RAISE EXCEPTION '% must be 1 to % letters, digits and _ . : / -, not %', field, most,
            hybrid_runner.shown(given) USING ERRCODE = 'invalid_parameter_value';
    END IF;
END
$$;
