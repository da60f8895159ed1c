-- services_changed: something was changed of services on these hosts: their rounds look at once.
-- Only rows that are new and have no key, so whoever changes services waits for nobody, and nobody
-- for them. A host without a job gets one by a job of kind monitors.open. So does one that gets
-- something to do, whatever is seen of its job here: that may end before this is committed.
CREATE OR REPLACE FUNCTION hybrid_monitors.services_changed(
    hosts text[], are_opened boolean DEFAULT false
) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    IF cardinality(services_changed.hosts) IS NULL THEN
        RETURN;
    END IF;
    INSERT INTO hybrid_runner.signals (key)
    SELECT 'monitors:' || h.host FROM unnest(services_changed.hosts) AS h (host);
    INSERT INTO hybrid_runner.jobs (kind, queue, payload)
    SELECT 'monitors.open', 'monitors', jsonb_build_object('hosts', jsonb_agg(h.host))
    FROM (
        SELECT n.host, (row_number() OVER () - 1) / 500 AS batch
        FROM unnest(services_changed.hosts) AS n (host)
        WHERE services_changed.are_opened OR NOT EXISTS (
            SELECT FROM hybrid_runner.jobs AS j WHERE j.key = 'monitors:' || n.host)
    ) AS h
    GROUP BY h.batch;
END
$$;
