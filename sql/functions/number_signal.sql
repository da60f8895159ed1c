-- number_signal: the trigger on signals: write down which jobs were there before it. By their ids,
-- since a clock may be set back.
CREATE OR REPLACE FUNCTION hybrid_runner.number_signal() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    new.newest_job := coalesce(pg_sequence_last_value('hybrid_runner.jobs_id_seq'), 0);
    RETURN new;
END
$$;
