-- store_ticks: store the jobs of these ticks of a schedule; the id of the last one. A tick that is
-- NULL is run by hand, now.
CREATE OR REPLACE FUNCTION hybrid_runner.store_ticks(
    its hybrid_runner.schedules, ticks timestamptz[]
) RETURNS bigint
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    last_id bigint;
BEGIN
    WITH made AS (
        INSERT INTO hybrid_runner.jobs AS j (
            kind, payload, queue, priority, run_at, max_attempts, timeout, traceparent, enqueued_by,
            schedule, tick
        )
        SELECT
            its.kind, its.payload, coalesce(its.queue, k.queue, 'default'), its.priority,
            coalesce(hybrid_runner.jittered(its.name, t.tick, its.jitter), clock_timestamp()),
            its.max_attempts, its.timeout,
            -- whoever fires has no part in it; whoever runs it by hand has
            CASE WHEN t.tick IS NULL THEN nullif(current_setting('hybrid_runner.traceparent', true), '') END,
            its.made_by, its.name, t.tick
        FROM unnest(store_ticks.ticks) WITH ORDINALITY AS t (tick, place)
        LEFT JOIN hybrid_runner.kinds AS k ON k.name = its.kind
        ORDER BY t.place
        RETURNING j.id
    )
    SELECT max(m.id) INTO last_id FROM made AS m;
    RETURN last_id;
END
$$;
