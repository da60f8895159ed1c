-- end_expired: end jobs whose time is over while they wait for a worker that knows them; returns
--   the ids of those that were ended.
-- $1 int8[] ids, $2 int4[] versions, $3 text[] errors
SELECT e.id FROM hybrid_runner.end_expired($1, $2, $3) AS e (id)
