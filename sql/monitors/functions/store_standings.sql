-- store_standings: where services stand after their polls. Changed in place first, since nearly all
-- are there: an upsert would lock each row besides.
CREATE OR REPLACE FUNCTION hybrid_monitors.store_standings(
    host text, decided hybrid_monitors.standings[]
) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_column
DECLARE
    changed bigint[];
BEGIN
    WITH written AS (
        UPDATE hybrid_monitors.standings AS t SET
            due_at = d.due_at, polled_at = d.polled_at, latency_ms = d.latency_ms,
            failures = d.failures, recoveries = d.recoveries, ok = d.ok, is_down = d.is_down,
            told_down = d.told_down, is_unsettled = d.is_unsettled, is_started = true,
            since = d.since, contrary_since = d.contrary_since, opened_at = d.opened_at,
            certificate_ends_at = d.certificate_ends_at, breaker = d.breaker, digest = d.digest,
            host = s.host, name = s.name, url = d.url, failure = d.failure, error = d.error,
            warnings = d.warnings
        FROM unnest(store_standings.decided) AS d
        JOIN hybrid_monitors.services AS s ON s.id = d.service_id
        WHERE t.service_id = d.service_id
        RETURNING t.service_id
    )
    SELECT coalesce(array_agg(w.service_id), '{}') INTO changed FROM written AS w;
    IF cardinality(changed) = cardinality(store_standings.decided) THEN
        RETURN;
    END IF;
    INSERT INTO hybrid_monitors.standings AS t (
        service_id, due_at, polled_at, latency_ms, failures, recoveries, ok, is_down, told_down,
        is_unsettled, since, contrary_since, opened_at, certificate_ends_at, breaker, digest, host,
        name, url, failure, error, warnings
    )
    SELECT
        d.service_id, d.due_at, d.polled_at, d.latency_ms, d.failures, d.recoveries, d.ok,
        d.is_down, d.told_down, d.is_unsettled, d.since, d.contrary_since, d.opened_at,
        d.certificate_ends_at, d.breaker, d.digest, store_standings.host, s.name, d.url, d.failure,
        d.error, d.warnings
    FROM unnest(store_standings.decided) AS d
    JOIN hybrid_monitors.services AS s ON s.id = d.service_id
    WHERE d.service_id <> ALL (changed)
    ORDER BY d.service_id
    ON CONFLICT (service_id) DO NOTHING;
END
$$;
