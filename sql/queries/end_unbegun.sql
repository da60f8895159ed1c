-- end_unbegun: end jobs that still wait although they were to begin by then, some of those with a
--   limit of time; returns where to go on, NULL at the end, and the ids of those that were ended.
-- $1 interval past, $2 text after_kind, $3 int8 after_id, $4 int4 most
SELECT e.last_kind, e.last_id, e.ended FROM hybrid_runner.end_unbegun($1, $2, $3, $4) AS e
