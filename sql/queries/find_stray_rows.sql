-- find_stray_rows: rows of an attached table that show running while no job of theirs does, and
--   since when their application may take them for stalled: (row_key, seconds), NULL: it cannot
--   say.
-- $1 int4 source, $2 int4 most
SELECT r.row_key, extract(epoch FROM clock_timestamp() - r.stale_at)::float8 AS seconds
FROM hybrid_runner.rows_of_source($1, 'running without job', NULL, $2) AS r
