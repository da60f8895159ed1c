-- find_missing_jobs: what of an application's query has no live job, in random order.
-- $1 text query, $2 text[] key_parts, $3 int4 most
SELECT m.key, m.payload, m.data FROM hybrid_runner.missing_jobs($1, $2, $3) AS m
