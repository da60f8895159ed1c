-- next_ticks: when a cron expression fires next, at most so many times: to see it before it is
-- used.
CREATE OR REPLACE FUNCTION hybrid_runner.next_ticks(
    cron text, timezone text DEFAULT 'UTC', most integer DEFAULT 5, "after" timestamptz DEFAULT now()
) RETURNS SETOF timestamptz
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    PERFORM hybrid_runner.check_zone(next_ticks.timezone);
    RETURN QUERY SELECT t.tick FROM unnest(hybrid_runner.cron_ticks(
        next_ticks.cron, next_ticks.timezone, next_ticks.after, NULL,
        least(greatest(next_ticks.most, 0), 1000))) AS t (tick);
END
$$;
