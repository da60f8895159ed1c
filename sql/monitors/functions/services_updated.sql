-- services_updated: the trigger on services: the hosts on which they were and are have something
-- new. Rows that were written as they are do not count.
CREATE OR REPLACE FUNCTION hybrid_monitors.services_updated() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    PERFORM hybrid_monitors.services_changed(ARRAY(
        SELECT DISTINCT h.host
        FROM old_rows AS o
        JOIN new_rows AS n ON n.id = o.id
        CROSS JOIN LATERAL unnest(ARRAY[o.host, n.host]) AS h (host)
        WHERE (o.active OR n.active) AND to_jsonb(o) IS DISTINCT FROM to_jsonb(n)));
    RETURN NULL;
END
$$;
