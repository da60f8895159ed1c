-- check_key_use: refuse, for enqueue_job, what does not go together in a job's key and times.
CREATE OR REPLACE FUNCTION hybrid_runner.check_key_use(
    key text, on_conflict text, run_at timestamptz, delay interval, start_by timestamptz,
    max_wait interval, unique_for interval, max_items integer
) RETURNS void
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    joins boolean := on_conflict IN ('follow', 'collect');
    wrong text;
BEGIN
    wrong := CASE
        WHEN on_conflict IS NULL OR on_conflict NOT IN ('exists', 'replace', 'error', 'follow', 'collect')
            THEN format('on_conflict must be exists, replace, error, follow or collect, not %s',
                coalesce(left(on_conflict, 60), 'NULL'))
        WHEN starts_with(key, '>')
            THEN 'key must not start with >: that is how a job waits for another one''s key'
        WHEN joins AND key IS NULL THEN on_conflict || ' needs a key'
        WHEN joins AND octet_length(key) > 511
            THEN format('a key for follow or collect is at most 511 bytes, not %s', octet_length(key))
        WHEN joins AND run_at = 'infinity' THEN format('run_at must not be infinity for %s', on_conflict)
        WHEN unique_for IS NOT NULL AND key IS NULL THEN 'unique_for needs a key'
        WHEN unique_for IS NOT NULL AND on_conflict NOT IN ('exists', 'error')
            THEN format('unique_for goes with on_conflict exists or error, not %s:'
                ' it would drop the last event', on_conflict)
        -- Months and days of opposite signs add up to little and reach far.
        WHEN NOT (unique_for > interval '0' AND unique_for <= interval '366 days'
            AND extract(epoch FROM unique_for) <= 31622400)
            THEN 'unique_for must be more than zero and at most 366 days'
        WHEN max_wait IS NOT NULL AND on_conflict IN ('exists', 'error')
            THEN format('max_wait goes with on_conflict replace, follow or collect, not %s', on_conflict)
        WHEN max_wait IS NOT NULL AND (key IS NULL OR delay IS NULL AND run_at IS NULL)
            THEN 'max_wait needs a key and a delay'
        WHEN NOT (max_wait > interval '0' AND max_wait <= interval '3650 days'
            AND extract(epoch FROM max_wait) <= 315576000)
            THEN 'max_wait must be more than zero and at most ten years'
        WHEN max_items IS NOT NULL AND on_conflict <> 'collect'
            THEN format('max_items goes with on_conflict collect, not %s', on_conflict)
        WHEN max_items NOT BETWEEN 1 AND 100000
            THEN format('max_items must be 1 to 100000, not %s', max_items)
        -- A run_at of about now may be the time of a call that named none.
        WHEN start_by < run_at AND run_at > now() + interval '1 second'
            THEN 'start_by is before run_at: it could never begin'
    END;
    IF wrong IS NOT NULL THEN
        RAISE EXCEPTION '%', wrong USING ERRCODE = 'invalid_parameter_value';
    END IF;
END
$$;
