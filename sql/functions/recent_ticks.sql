-- recent_ticks: the ticks of a schedule from one time to another, both included, in order; of more
-- than so many the newest.
CREATE OR REPLACE FUNCTION hybrid_runner.recent_ticks(
    its hybrid_runner.schedules, since timestamptz, until timestamptz, most integer
) RETURNS timestamptz[]
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    start timestamptz := coalesce(its.starts_at, timestamptz '2001-01-01 UTC');
    step double precision := extract(epoch FROM its.every);
    last bigint;
    ticks timestamptz[] := '{}';
    found timestamptz[];
    closes timestamptz := least(recent_ticks.until, its.ends_at);
    opens timestamptz;
    -- In so many minutes there are no more ticks than minutes.
    width interval := make_interval(mins => recent_ticks.most);
BEGIN
    since := greatest(since, its.starts_at);
    IF its.at IS NOT NULL THEN
        RETURN CASE WHEN its.at BETWEEN since AND closes THEN ARRAY[its.at] ELSE '{}' END;
    ELSIF its.every IS NOT NULL THEN
        last := floor(extract(epoch FROM closes - start)::float8 / step);
        RETURN ARRAY(
            SELECT start + make_interval(secs => step * n)
            FROM generate_series(greatest(last - most + 1, 0), last) AS n
            WHERE start + make_interval(secs => step * n) BETWEEN since AND closes
            ORDER BY n
        );
    END IF;
    -- From the end, in stretches that grow while little is found.
    WHILE closes >= since AND cardinality(ticks) < most LOOP
        opens := greatest(closes - width, since - interval '1 microsecond');
        found := hybrid_runner.cron_ticks(its.cron, its.timezone, opens, closes, most);
        IF cardinality(found) = most AND width > make_interval(mins => most) THEN
            width := greatest(width / 4, make_interval(mins => most));
            CONTINUE;
        END IF;
        ticks := found || ticks;
        closes := opens;
        width := width * 4;
    END LOOP;
    RETURN ticks[greatest(1, cardinality(ticks) - most + 1):];
END
$$;
