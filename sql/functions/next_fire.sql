-- next_fire: when a cron expression fires next after a time, by the clocks of a time zone; NULL:
-- never.
CREATE OR REPLACE FUNCTION hybrid_runner.next_fire(
    cron text, timezone text, "after" timestamptz
) RETURNS timestamptz
LANGUAGE plpgsql STABLE PARALLEL SAFE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    PERFORM hybrid_runner.check_zone(next_fire.timezone);
    RETURN (hybrid_runner.cron_ticks(next_fire.cron, next_fire.timezone, next_fire.after, NULL, 1))[1];
END
$$;
