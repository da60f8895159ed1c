-- keep_schedule_duty: the duty of that name is there once there are schedules. Nobody is waited
-- for: whoever fires calls this again.
CREATE OR REPLACE FUNCTION hybrid_runner.keep_schedule_duty() RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET lock_timeout = '50ms'
AS $$
BEGIN
    IF EXISTS (SELECT FROM hybrid_runner.duties AS d WHERE d.name = 'schedules') THEN
        RETURN;
    END IF;
    INSERT INTO hybrid_runner.duties (name, every) VALUES ('schedules', '30 seconds')
    ON CONFLICT (name) DO NOTHING;
EXCEPTION
    WHEN lock_not_available THEN
        NULL; -- in a transaction that is open
END
$$;
