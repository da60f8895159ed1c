-- store_rounds: store the jobs of these hosts, unless their keys are taken; how many were stored.
CREATE OR REPLACE FUNCTION hybrid_monitors.store_rounds(hosts text[]) RETURNS integer
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    added integer;
BEGIN
    INSERT INTO hybrid_runner.jobs (kind, queue, key, payload)
    SELECT 'monitors.round', 'monitors', 'monitors:' || h.host, jsonb_build_object('host', h.host)
    FROM unnest(store_rounds.hosts) WITH ORDINALITY AS h (host, place)
    ORDER BY h.place
    ON CONFLICT (key) WHERE key IS NOT NULL DO NOTHING;
    GET DIAGNOSTICS added = ROW_COUNT;
    RETURN added;
END
$$;
