-- let_go: this job has ended, and had a key, or was made by a schedule: the key is passed on, and a
-- tick that waits becomes a job. Returns the id, for end_jobs, which asks it of few of many jobs.
CREATE OR REPLACE FUNCTION hybrid_runner.let_go(id bigint, key text, schedule text) RETURNS bigint
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    IF key IS NOT NULL AND EXISTS (SELECT FROM hybrid_runner.jobs AS j WHERE j.key = '>' || let_go.key) THEN
        PERFORM hybrid_runner.pass_keys(ARRAY[key]);
    END IF;
    IF schedule IS NOT NULL THEN
        RETURN hybrid_runner.free_tick(schedule, id);
    END IF;
    RETURN id;
END
$$;
