-- finish_followed_jobs: what finish_jobs does, and store the jobs that follow, all in this
--   statement or nothing.
-- $1 int8[] ids, $2 int8[] claims, $3 text[] states, $4 text[] results, $5 text[] errors,
-- $6 text[] traceparents, $7 text[] follow_ups, $8 text[] kinds, $9 text[] on_ends,
-- $10 bool attached, $11 bool put_off
-- odd: traceparents are for the jobs that the kinds have under on_end; follow_ups bring their own.
SELECT e.id FROM hybrid_runner.end_jobs($1, $2, $3, $4, $5, NULL, $6, $7, $8, $9, $10, put_off => $11) AS e (id)
