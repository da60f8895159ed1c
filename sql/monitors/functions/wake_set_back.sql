-- wake_set_back: wake the rounds that wait for a time which was soon before Postgres's clock was
-- set back, or before a server took over whose clock is behind; and upkeep. Returns how many.
CREATE OR REPLACE FUNCTION hybrid_monitors.wake_set_back() RETURNS integer
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    woken integer;
BEGIN
    INSERT INTO hybrid_runner.signals (key)
    SELECT j.key
    FROM (
        SELECT 'monitors:' || h.host AS key FROM hybrid_monitors.hosts AS h
        WHERE h.looked_at > clock_timestamp() + interval '5 seconds'
        UNION ALL
        SELECT 'monitors.upkeep' FROM hybrid_monitors.upkeep_runs AS r
        WHERE r.ended_at > clock_timestamp() + interval '5 seconds'
    ) AS ahead
    JOIN hybrid_runner.jobs AS j ON j.key = ahead.key
    WHERE j.state = 'queued' AND j.waits_for = j.key AND j.run_at > clock_timestamp();
    GET DIAGNOSTICS woken = ROW_COUNT;
    RETURN woken;
END
$$;
