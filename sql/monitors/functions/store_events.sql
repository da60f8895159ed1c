-- store_events: store what has happened, with the jobs of those who want to be told; returns the
-- events' numbers, which have no gaps and are in the order of commits.
-- What is suppressed is stored and not told.
CREATE OR REPLACE FUNCTION hybrid_monitors.store_events(
    kept bigint[], stopped bigint[], round jsonb
) RETURNS bigint[]
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_column
DECLARE
    happened record;
    numbers bigint[];
    newest bigint;
BEGIN
    SELECT
        array_agg(n.kind ORDER BY n.place) AS kinds, array_agg(n.service_id ORDER BY n.place) AS ids,
        array_agg(n.payload ORDER BY n.place) AS payloads,
        array_agg(n.suppressed ORDER BY n.place) AS reasons
    INTO happened
    FROM (
        SELECT e.kind, e.service_id, e.payload, e.suppressed, e.is_stop, e.place
        FROM ROWS FROM (
            jsonb_to_recordset(round -> 'events') AS (
                kind text, service_id bigint, payload jsonb, suppressed text, is_stop boolean)
        ) WITH ORDINALITY AS e (kind, service_id, payload, suppressed, is_stop, place)
    ) AS n
    WHERE n.service_id = ANY (CASE WHEN n.is_stop THEN store_events.stopped ELSE store_events.kept END);
    IF happened.ids IS NULL THEN
        RETURN '{}';
    END IF;
    UPDATE hybrid_monitors.event_numbers AS n SET last = n.last + cardinality(happened.ids)
    RETURNING n.last INTO newest;
    WITH new AS MATERIALIZED (
        SELECT
            newest - cardinality(happened.ids) + e.place AS id, clock_timestamp() AS at, e.kind,
            e.service_id, e.payload, e.suppressed
        FROM unnest(happened.kinds, happened.ids, happened.payloads, happened.reasons)
            WITH ORDINALITY AS e (kind, service_id, payload, suppressed, place)
    ),
    made AS (
        INSERT INTO hybrid_monitors.events (id, at, kind, service_id, payload, suppressed)
        SELECT n.id, n.at, n.kind, n.service_id, n.payload, n.suppressed FROM new AS n
    ),
    told AS (
        INSERT INTO hybrid_runner.jobs (kind, queue, payload, max_attempts)
        SELECT
            s.job_kind, s.queue,
            n.payload || jsonb_build_object('id', n.id, 'kind', n.kind, 'at', n.at), s.max_attempts
        FROM new AS n
        JOIN jsonb_to_recordset(round -> 'subscriptions')
            AS s (event text, job_kind text, queue text, max_attempts smallint) ON s.event = n.kind
        WHERE n.suppressed IS NULL
        ORDER BY n.id
    )
    SELECT array_agg(n.id ORDER BY n.id) INTO numbers FROM new AS n;
    RETURN numbers;
END
$$;
