-- finish_jobs: move ended jobs to the archive; returns the ids moved, a stale claim moves nothing.
-- $1 int8[] ids, $2 int8[] claims, $3 text[] states, $4 text[] results, $5 text[] errors
-- odd: states that are NULL are all completed, results that are NULL all JSON null, errors that
--   are NULL all none.
SELECT e.id FROM hybrid_runner.end_jobs($1, $2, $3, $4, $5) AS e (id)
