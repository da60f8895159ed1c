-- services_updated: the trigger on services: the hosts on which they were and are have something
-- new. Rows that were written as they are do not count.
CREATE OR REPLACE FUNCTION hybrid_monitors.services_updated() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    with_more text[]; -- to do there than before
    others text[];
BEGIN
    SELECT
        array_agg(c.host) FILTER (WHERE c.has_more), array_agg(c.host) FILTER (WHERE NOT c.has_more)
    INTO with_more, others
    FROM (
        SELECT
            h.host,
            bool_or(h.host = n.host AND n.active AND (o.host <> n.host OR NOT o.active)) AS has_more
        FROM old_rows AS o
        JOIN new_rows AS n ON n.id = o.id
        CROSS JOIN LATERAL unnest(ARRAY[o.host, n.host]) AS h (host)
        WHERE (o.active OR n.active) AND to_jsonb(o) IS DISTINCT FROM to_jsonb(n)
        GROUP BY h.host
    ) AS c;
    PERFORM hybrid_monitors.services_changed(with_more, are_opened => true);
    PERFORM hybrid_monitors.services_changed(others);
    RETURN NULL;
END
$$;
