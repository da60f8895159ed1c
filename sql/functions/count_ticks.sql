-- count_ticks: how many ticks a schedule has from one time on and until another; of a cron
-- expression 1,000 at most are counted.
CREATE OR REPLACE FUNCTION hybrid_runner.count_ticks(
    its hybrid_runner.schedules, since timestamptz, until timestamptz
) RETURNS bigint
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    RETURN CASE
        WHEN since >= until THEN 0
        WHEN its.at IS NOT NULL THEN CASE WHEN its.at >= since AND its.at < until THEN 1 ELSE 0 END
        WHEN its.every IS NOT NULL THEN
            ceil(extract(epoch FROM until - since)::float8 / extract(epoch FROM its.every)::float8)
        ELSE cardinality(hybrid_runner.cron_ticks(
            its.cron, its.timezone, since - interval '1 microsecond', until - interval '1 microsecond',
            1000))
    END;
END
$$;
