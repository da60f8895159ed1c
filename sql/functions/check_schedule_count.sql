-- check_schedule_count: refuse more schedules than one login may have; who may change those of
-- other logins may make any number. What other transactions of that login have not committed is
-- not counted: that would make them wait for each other.
CREATE OR REPLACE FUNCTION hybrid_runner.check_schedule_count() RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    most CONSTANT integer := 10000;
BEGIN
    IF (
        SELECT count(*) FROM (
            SELECT FROM hybrid_runner.schedules AS s WHERE s.made_by = session_user LIMIT most + 1
        ) AS own
    ) > most AND NOT has_column_privilege(
        session_user, 'hybrid_runner.schedules', 'paused_at', 'UPDATE')
    THEN
        RAISE EXCEPTION 'login % would have more than % schedules, which is the most: remove some by '
            'hybrid_runner.unschedule(name), or make those that are alike one, whose job stores the others',
            quote_ident(session_user), most USING ERRCODE = 'program_limit_exceeded';
    END IF;
END
$$;
