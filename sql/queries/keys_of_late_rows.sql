-- keys_of_late_rows: the keys of rows of an attached table that are late, behind one of them.
-- $1 int4 source, $2 text after, $3 int8 most
SELECT l.row_key FROM hybrid_runner.late_rows AS l
WHERE l.source = $1 AND l.row_key > $2
ORDER BY l.row_key
LIMIT $3
