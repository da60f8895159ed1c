-- describe_other_sources: what else the rows of a table are worked on for.
-- $1 int8 oid, $2 text kind
SELECT
    s.kind, s.definition #>> '{columns,status}' AS status,
    s.definition #>> '{words,queued}' AS queued
FROM hybrid_runner.sources AS s
WHERE s.relation = $1::int8::oid AND s.kind <> $2
ORDER BY s.kind
