-- services_deleted: the trigger on services: rounds of their hosts tell that they have stopped.
CREATE OR REPLACE FUNCTION hybrid_monitors.services_deleted() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    PERFORM hybrid_monitors.services_changed(ARRAY(
        SELECT DISTINCT d.host FROM deleted AS d WHERE d.active));
    RETURN NULL;
END
$$;
