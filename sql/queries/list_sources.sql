-- list_sources: the attached tables, what their jobs do, and what is wrong with their triggers.
-- odd: jobs are counted by the index of live rows, late rows up to a thousand.
SELECT
    s.id, CASE WHEN c.oid IS NOT NULL THEN s.relation::text END AS named_now, s.relation_name AS attached_as, s.kind, s.queue, s.owner, j.queued, j.running, l.late, l.oldest_late, l.why AS late_because,
    s.made_by AS attached_by, s.made_at AS attached_at, s.detaching_at, s.is_reconciled, s.note,
    ARRAY(
        SELECT t.tgname::text FROM pg_catalog.pg_trigger AS t
        WHERE t.tgrelid = s.relation AND starts_with(t.tgname::text, 'hybrid_runner_' || s.id || '_')
        ORDER BY 1
    ) AS triggers,
    ARRAY(
        SELECT t.tgname::text FROM pg_catalog.pg_trigger AS t
        WHERE t.tgrelid = s.relation AND starts_with(t.tgname::text, 'hybrid_runner_' || s.id || '_') AND t.tgenabled IN ('D', 'R')
        ORDER BY 1
    ) AS disabled,
    s.definition::text AS definition
FROM hybrid_runner.sources AS s
LEFT JOIN pg_catalog.pg_class AS c ON c.oid = s.relation
CROSS JOIN LATERAL (
    SELECT
        count(*) FILTER (WHERE j.state = 'queued')::int4 AS queued,
        count(*) FILTER (WHERE j.state = 'running')::int4 AS running
    FROM hybrid_runner.jobs AS j WHERE j.source = s.id
) AS j
CROSS JOIN LATERAL (
    SELECT count(*)::int4 AS late, min(r.since) AS oldest_late, min(r.why) AS why
    FROM (SELECT l.since, l.why FROM hybrid_runner.late_rows AS l WHERE l.source = s.id LIMIT 1000) AS r
) AS l
ORDER BY s.id
LIMIT 10000
