-- apply_row_changes: do for jobs what rows of one table ask for; (id, row_key, what, did, refused)
--   of the changes looked at.
-- $1 int4 source, $2 int8 behind, $3 int4 most
SELECT c.id, c.row_key, c.what, c.did, c.refused
FROM hybrid_runner.apply_row_changes($1, $2, $3) AS c
ORDER BY c.id
