-- services_inserted: the trigger on services: their hosts have something new.
CREATE OR REPLACE FUNCTION hybrid_monitors.services_inserted() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    PERFORM hybrid_monitors.services_changed(ARRAY(
        SELECT DISTINCT i.host FROM inserted AS i WHERE i.active), are_opened => true);
    RETURN NULL;
END
$$;
