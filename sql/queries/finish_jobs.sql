-- finish_jobs: move ended jobs to the archive; returns the ids moved, a stale claim moves nothing.
-- $1 int8[] ids, $2 int8[] claims, $3 text[] states, $4 text[] results, $5 text[] errors,
-- $6 text[] kinds, $7 bool attached, $8 bool put_off
-- odd: states that are NULL are all completed, results that are NULL all JSON null, errors that
--   are NULL all none. The kinds are those of all of them, in any order.
-- odd: $8: rows of attached tables are written later, since such a table is slow.
SELECT e.id FROM hybrid_runner.end_jobs($1, $2, $3, $4, $5, kinds => $6, attached => $7, put_off => $8) AS e (id)
