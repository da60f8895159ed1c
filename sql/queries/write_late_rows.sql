-- write_late_rows: write into these rows what is true of their jobs now: (row_key, outcome).
-- $1 int4 source, $2 text[] keys
SELECT w.row_key, w.outcome FROM hybrid_runner.write_late_rows($1, $2) AS w
