-- begin_successor: the key that a claimed job has from now on which waited for it; NULL: it may not
--   begin.
-- $1 int8 id, $2 int8 claim
-- odd: an empty text when somebody holds the job, and the claim may stay.
SELECT hybrid_runner.begin_successor($1, $2)
