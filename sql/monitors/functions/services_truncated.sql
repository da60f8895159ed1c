-- services_truncated: the trigger on services: all that were polled have stopped.
CREATE OR REPLACE FUNCTION hybrid_monitors.services_truncated() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    PERFORM hybrid_monitors.services_changed(ARRAY(
        SELECT DISTINCT t.host FROM hybrid_monitors.standings AS t));
    RETURN NULL;
END
$$;
