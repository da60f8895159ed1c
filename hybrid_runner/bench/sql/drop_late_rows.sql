-- drop_late_rows: nobody waits any more for what rows should show.
TRUNCATE hybrid_runner.late_rows, hybrid_runner.row_changes
