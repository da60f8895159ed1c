-- changed_sources: tables whose rows have had changes that their jobs do not know yet.
SELECT DISTINCT c.source FROM hybrid_runner.row_changes AS c ORDER BY c.source
