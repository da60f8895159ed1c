-- make_partitions: have partitions ready for now and ahead of time; returns how many were made.
-- Also between those that are there: a clock that was forward for a while leaves a gap.
CREATE OR REPLACE FUNCTION hybrid_monitors.make_partitions(
    days_ahead integer DEFAULT 7
) RETURNS integer
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp SET timezone = 'UTC' SET datestyle = 'ISO'
SET lock_timeout = '1s'
AS $$
DECLARE
    wanted record;
    opens timestamptz;
    closes timestamptz;
    made integer := 0;
BEGIN
    PERFORM FROM hybrid_monitors.upkeep_runs AS r FOR UPDATE;
    FOR wanted IN
        SELECT r.what, r.unit, ('1 ' || r.unit)::interval AS width FROM hybrid_monitors.retention AS r
        ORDER BY r.what
    LOOP
        opens := date_trunc(wanted.unit, now());
        WHILE opens <= now() + make_interval(days => days_ahead) LOOP
            SELECT max(p.upper) INTO closes FROM hybrid_monitors.partitions AS p
            WHERE p.what = wanted.what AND p.lower <= opens AND p.upper > opens;
            IF closes IS NULL THEN
                SELECT least(date_trunc(wanted.unit, opens) + wanted.width, min(p.lower)) INTO closes
                FROM hybrid_monitors.partitions AS p
                WHERE p.what = wanted.what AND p.lower > opens;
                PERFORM hybrid_monitors.add_partition(wanted.what, opens, closes);
                made := made + 1;
            END IF;
            opens := closes;
        END LOOP;
    END LOOP;
    RETURN made;
END
$$;
