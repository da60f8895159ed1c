-- own_schedule: for the functions that change one: lock it, if the caller may change it: whose it
-- is, and who may write the column paused_at. A row without a name: there is none.
CREATE OR REPLACE FUNCTION hybrid_runner.own_schedule(name text) RETURNS hybrid_runner.schedules
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET lock_timeout = '5s'
AS $$
DECLARE
    its hybrid_runner.schedules;
BEGIN
    SELECT s.* INTO its FROM hybrid_runner.schedules AS s WHERE s.name = own_schedule.name;
    -- Asked before it is locked, since nobody may hold those of others, and again of what is
    -- locked, which somebody else may have made since.
    FOR asked IN 1..2 LOOP
        IF its.made_by <> session_user AND NOT has_column_privilege(
            session_user, 'hybrid_runner.schedules', 'paused_at', 'UPDATE') THEN
            RAISE EXCEPTION 'schedule % belongs to %: to change those of other logins takes the right '
                'UPDATE (paused_at) on hybrid_runner.schedules',
                hybrid_runner.shown(its.name), quote_ident(its.made_by)
                USING ERRCODE = 'insufficient_privilege';
        END IF;
        EXIT WHEN asked = 2;
        SELECT s.* INTO its FROM hybrid_runner.schedules AS s
        WHERE s.name = own_schedule.name FOR UPDATE;
    END LOOP;
    RETURN its;
END
$$;
