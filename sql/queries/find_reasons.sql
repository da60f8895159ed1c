-- find_reasons: the last error of each of these ended jobs: of a cancelled one, who asked for
--   that and why.
-- $1 int8[] ids
SELECT a.id, a.errors -> -1 AS error FROM hybrid_runner.archived($1) AS a WHERE a.errors IS NOT NULL
