-- run_now: store a job of a schedule now, beside its ticks; the job's id, and whether it was there
--   before.
-- $1 text name
-- odd: what the function stores is not seen by the statement that calls it.
SELECT r.id, EXISTS (SELECT FROM hybrid_runner.jobs AS j WHERE j.id = r.id) AS lived
FROM hybrid_runner.run_now($1) AS r (id)
