-- shown: what was given, as a line of an error has it: quoted, cut to 60 characters, without what a
-- terminal would obey.
CREATE OR REPLACE FUNCTION hybrid_runner.shown(given text) RETURNS text
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    RETURN CASE WHEN given IS NULL THEN 'NULL' ELSE
        '''' || regexp_replace(left(given, 60), '[^[:print:]]', '?', 'g')
        || CASE WHEN length(given) > 60 THEN '…' ELSE '' END || '''' END;
END
$$;
