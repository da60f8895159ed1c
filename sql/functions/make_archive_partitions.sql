-- make_archive_partitions: have the archive's partitions ready ahead of time; returns how many were
-- made.
CREATE OR REPLACE FUNCTION hybrid_runner.make_archive_partitions(
    days_ahead integer DEFAULT 7
) RETURNS integer
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp SET timezone = 'UTC' SET datestyle = 'ISO'
SET lock_timeout = '2s'
AS $$
DECLARE
    wanted record;
    opens timestamptz;
    closes timestamptz;
    made integer := 0;
BEGIN
    PERFORM FROM hybrid_runner.locks AS l WHERE l.name = 'partitions' FOR UPDATE;
    FOR wanted IN
        -- As fine as what is forgotten first needs, and no finer: each partition costs whoever
        -- looks for an id.
        SELECT s.half, w.unit, now() + least(make_interval(days => days_ahead), w.ahead) AS until
        FROM hybrid_runner.archive_halves AS s
        JOIN (
            VALUES ('hour', interval '6 hours'), ('day', '3 days'), ('month', '1 month')
        ) AS w (unit, ahead) ON w.unit = CASE
            WHEN s.shortest < '12 hours' THEN 'hour'
            WHEN s.shortest < '60 days' THEN 'day'
            ELSE 'month'
        END
    LOOP
        SELECT coalesce(max(p.upper), date_trunc(wanted.unit, now())) INTO opens
        FROM hybrid_runner.archive_partitions AS p
        WHERE p.half = wanted.half AND p.upper > date_trunc(wanted.unit, now());
        WHILE opens <= wanted.until LOOP
            closes := date_trunc(wanted.unit, opens) + ('1 ' || wanted.unit)::interval;
            PERFORM hybrid_runner.add_archive_partition(wanted.half, opens, closes);
            opens := closes;
            made := made + 1;
        END LOOP;
    END LOOP;

    -- For look-ups by id: hourly for a while, then daily, as far back as anything is kept.
    INSERT INTO hybrid_runner.id_history (next_id)
    SELECT coalesce(
        pg_sequence_last_value(pg_get_serial_sequence('hybrid_runner.jobs', 'id')::regclass), 0) + 1
    WHERE NOT EXISTS (
        SELECT FROM hybrid_runner.id_history AS h
        WHERE h.noted_at > clock_timestamp() - interval '50 minutes');
    DELETE FROM hybrid_runner.id_history AS h
    WHERE h.noted_at < clock_timestamp() - interval '7 days' AND (
        EXISTS (SELECT FROM hybrid_runner.id_history AS e
            WHERE date_trunc('day', e.noted_at) = date_trunc('day', h.noted_at)
                AND e.noted_at < h.noted_at)
        OR h.noted_at < clock_timestamp() - (
            SELECT max(r.keep) + interval '1 month' FROM hybrid_runner.retention AS r));
    RETURN made;
END
$$;
