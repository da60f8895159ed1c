-- end_unbegun: end jobs that still wait although they were to begin by then; returns the ids of
--   those that were ended.
-- $1 interval past, $2 int4 most
SELECT e.id FROM hybrid_runner.end_unbegun($1, $2) AS e (id)
