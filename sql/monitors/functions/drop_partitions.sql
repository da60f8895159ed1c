-- drop_partitions: drop partitions of which nothing is kept any more; returns what was done to
-- which. One that a long transaction holds up is emptied, and dropped another time.
CREATE OR REPLACE FUNCTION hybrid_monitors.drop_partitions(
    most integer DEFAULT 20
) RETURNS TABLE (what text, partition text)
LANGUAGE plpgsql SECURITY DEFINER
-- A statement that waits for a lock holds up all later ones: so wait briefly.
SET search_path = pg_catalog, pg_temp SET timezone = 'UTC' SET datestyle = 'ISO'
SET lock_timeout = '300ms'
AS $$
#variable_conflict use_column
DECLARE
    due record;
BEGIN
    PERFORM FROM hybrid_monitors.upkeep_runs AS r FOR UPDATE SKIP LOCKED;
    IF NOT FOUND THEN
        RETURN;
    END IF;
    FOR due IN
        SELECT p.what AS whole, p.partition AS name
        FROM hybrid_monitors.partitions AS p
        JOIN hybrid_monitors.retention AS r ON r.what = p.what
        CROSS JOIN hybrid_monitors.upkeep_runs AS u
        WHERE NOT p.is_default AND p.upper + r.keep <= now()
            -- not before its hours are summed up
            AND (p.what <> 'latencies' OR u.rolled_up_until >= p.upper
                OR p.upper + r.keep <= now() - interval '3 days')
        ORDER BY p.upper
        LIMIT most
    LOOP
        partition := due.name;
        BEGIN
            EXECUTE format('LOCK TABLE ONLY hybrid_monitors.%I IN ACCESS EXCLUSIVE MODE', due.whole);
            EXECUTE format('LOCK TABLE ONLY hybrid_monitors.%I IN ACCESS EXCLUSIVE MODE NOWAIT', due.name);
            EXECUTE format('DROP TABLE hybrid_monitors.%I', due.name);
            what := 'dropped';
        EXCEPTION WHEN lock_not_available OR deadlock_detected THEN
            what := 'blocked';
            BEGIN
                IF pg_relation_size(format('hybrid_monitors.%I', due.name)::regclass) > 0 THEN
                    EXECUTE format('TRUNCATE hybrid_monitors.%I', due.name);
                    what := 'emptied';
                END IF;
            EXCEPTION WHEN lock_not_available OR deadlock_detected THEN
                NULL; -- somebody reads it, and will have ended another time
            END;
        END;
        RETURN NEXT;
    END LOOP;
END
$$;
