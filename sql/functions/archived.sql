-- archived: ended jobs by id, without a look into every partition of the archive: a job cannot end
-- before its id was given out, and most end soon afterwards.
-- What has not been found by then is looked for everywhere: clocks are set back.
CREATE OR REPLACE FUNCTION hybrid_runner.archived(ids bigint[]) RETURNS SETOF hybrid_runner.archive
LANGUAGE plpgsql STABLE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp SET timezone = 'UTC' SET datestyle = 'ISO'
AS $$
DECLARE
    missing bigint[] := archived.ids;
    found bigint[];
    opens timestamptz;
    first_opens timestamptz;
    closes timestamptz;
    width interval := '1 hour';
    job hybrid_runner.archive;
BEGIN
    IF cardinality(archived.ids) = 0 THEN
        RETURN;
    END IF;
    SELECT h.noted_at INTO opens FROM hybrid_runner.id_history AS h
    WHERE h.next_id <= (SELECT min(i.id) FROM unnest(archived.ids) AS i (id))
    ORDER BY h.noted_at DESC LIMIT 1;
    opens := coalesce(opens, '-infinity');
    first_opens := opens;
    LOOP
        closes := CASE WHEN isfinite(opens) AND opens + width < clock_timestamp()
            THEN opens + width ELSE 'infinity' END;
        found := '{}';
        -- Bounds that are written into the statement leave all other partitions unplanned.
        FOR job IN EXECUTE format(
            'SELECT a.* FROM hybrid_runner.archive AS a '
            'WHERE a.id = ANY ($1) AND a.finished_at >= %L AND a.finished_at < %L', opens, closes)
            USING missing
        LOOP
            found := array_append(found, job.id);
            RETURN NEXT job;
        END LOOP;
        -- All at once: thousands may be asked for, and each removal would copy them all.
        missing := ARRAY(SELECT unnest(missing) EXCEPT SELECT unnest(found));
        EXIT WHEN cardinality(missing) = 0 OR closes = 'infinity';
        opens := closes;
        width := width * 4;
    END LOOP;
    IF cardinality(missing) > 0 AND isfinite(first_opens) THEN
        RETURN QUERY EXECUTE format(
            'SELECT a.* FROM hybrid_runner.archive AS a '
            'WHERE a.id = ANY ($1) AND a.finished_at < %L', first_opens)
            USING missing;
    END IF;
END
$$;
