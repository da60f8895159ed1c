-- why_late: why rows of attached tables do not show what became of these jobs: one of the reasons.
-- $1 int8[] ids
SELECT t.relation_name || ': ' || l.why
FROM hybrid_runner.jobs AS j
JOIN hybrid_runner.late_rows AS l ON l.source = j.source AND l.row_key = j.row_key
JOIN hybrid_runner.sources AS t ON t.id = l.source
WHERE j.id = ANY ($1)
LIMIT 1
