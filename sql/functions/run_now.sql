-- run_now: store a job of a schedule now, whatever its times are; returns its id.
-- While a job of it lives, and two may not, that one's id, with a notice.
CREATE OR REPLACE FUNCTION hybrid_runner.run_now(name text) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET enable_seqscan = off
AS $$
DECLARE
    its hybrid_runner.schedules := hybrid_runner.own_schedule(run_now.name);
    job bigint;
BEGIN
    IF its.name IS NULL THEN
        RAISE EXCEPTION 'there is no schedule %', hybrid_runner.shown(run_now.name)
            USING ERRCODE = 'invalid_parameter_value';
    END IF;
    IF its.overlap <> 'allow' THEN
        SELECT j.id INTO job FROM hybrid_runner.jobs AS j WHERE j.schedule = its.name ORDER BY j.id LIMIT 1;
        IF FOUND THEN
            RAISE NOTICE 'job % of schedule % still lives: nothing was stored', job,
                hybrid_runner.shown(its.name);
            RETURN job;
        END IF;
    END IF;
    job := hybrid_runner.store_ticks(its, ARRAY[NULL::timestamptz]);
    UPDATE hybrid_runner.schedules AS s SET last_job = job WHERE s.name = its.name;
    RETURN job;
END
$$;
