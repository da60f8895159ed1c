-- source_states: attached tables, and how many of their rows are late.
-- odd: the table may have been dropped.
SELECT
    s.id, s.relation_name, s.kind, s.is_reconciled, s.note, s.detaching_at IS NOT NULL AS is_detaching,
    EXISTS (SELECT FROM pg_catalog.pg_class AS c WHERE c.oid = s.relation) AS is_there,
    l.late, l.refused, coalesce(l.oldest, 0)::float8 AS oldest, l.why,
    extract(epoch FROM clock_timestamp() - s.made_at)::float8 AS age
FROM hybrid_runner.sources AS s
CROSS JOIN LATERAL (
    SELECT
        count(*) AS late, count(*) FILTER (WHERE r.is_refused) AS refused,
        extract(epoch FROM clock_timestamp() - min(r.since)) AS oldest,
        (array_agg(r.why ORDER BY r.is_refused DESC, r.since))[1] AS why
    FROM (
        SELECT a.why, a.is_refused, a.since
        FROM hybrid_runner.late_rows AS a
        WHERE a.source = s.id
        LIMIT 100000
    ) AS r
) AS l
ORDER BY s.id
