-- check_time: an error unless every client can read this time. NULL is fine.
CREATE OR REPLACE FUNCTION hybrid_runner.check_time(field text, given timestamptz) RETURNS void
LANGUAGE plpgsql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    IF given < timestamptz '1970-01-01 UTC' OR given >= timestamptz '9000-01-01 UTC' THEN
        RAISE EXCEPTION '% must be between the years 1970 and 9000, not %', field, left(given::text, 40)
            USING ERRCODE = 'invalid_parameter_value';
    END IF;
END
$$;
