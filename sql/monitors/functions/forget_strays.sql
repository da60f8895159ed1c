-- forget_strays: remove what has found no partition, and is older than it is kept: so many rows of
-- each table. What is younger moves to its partition once there is one.
CREATE OR REPLACE FUNCTION hybrid_monitors.forget_strays(most integer) RETURNS integer
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    kept record;
    forgotten integer := 0;
    n integer;
BEGIN
    FOR kept IN SELECT r.what, r.keep FROM hybrid_monitors.retention AS r ORDER BY r.what LOOP
        EXECUTE format(
            'DELETE FROM hybrid_monitors.%1$I AS d WHERE d.ctid = ANY (ARRAY('
            'SELECT o.ctid FROM hybrid_monitors.%1$I AS o WHERE o.%2$I < $1 LIMIT $2 '
            'FOR UPDATE SKIP LOCKED))',
            kept.what || '_default', CASE kept.what WHEN 'hours' THEN 'hour' ELSE 'at' END)
        USING now() - kept.keep, most;
        GET DIAGNOSTICS n = ROW_COUNT;
        forgotten := forgotten + n;
    END LOOP;
    RETURN forgotten;
END
$$;
