-- renew_ticks: reckon the next ticks anew, once for each version of Postgres: another one may know
-- other rules of time zones. From the last tick on, so that none fires twice.
CREATE OR REPLACE FUNCTION hybrid_runner.renew_ticks() RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    its hybrid_runner.schedules;
    renewed timestamptz;
    began timestamptz := clock_timestamp();
BEGIN
    IF EXISTS (
        SELECT FROM hybrid_runner.zone_rules AS z WHERE z.server_version = current_setting('server_version')
    ) THEN
        RETURN;
    END IF;
    PERFORM FROM hybrid_runner.zone_rules AS z FOR UPDATE SKIP LOCKED;
    IF NOT FOUND THEN
        RETURN; -- somebody does it now
    END IF;
    FOR its IN
        SELECT s.* FROM hybrid_runner.schedules AS s
        WHERE s.cron IS NOT NULL AND s.timezone <> 'UTC' AND isfinite(s.ticked_until)
            AND s.next_at IS NOT NULL
        ORDER BY s.next_at FOR UPDATE SKIP LOCKED
    LOOP
        -- Nothing fires meanwhile. Of what is left one tick comes as it was reckoned before.
        EXIT WHEN clock_timestamp() > began + interval '10 seconds';
        BEGIN
            renewed := hybrid_runner.tick_after(its);
            UPDATE hybrid_runner.schedules AS s SET next_at = renewed
            WHERE s.name = its.name AND s.next_at IS DISTINCT FROM renewed;
        EXCEPTION
            WHEN invalid_parameter_value THEN
                NULL; -- its zone is gone, which it says when it fires
        END;
    END LOOP;
    UPDATE hybrid_runner.zone_rules AS z SET server_version = current_setting('server_version');
END
$$;
