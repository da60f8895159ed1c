-- run_now: store a job of a schedule now, beside its ticks; the job's id.
-- $1 text name
SELECT hybrid_runner.run_now($1)
