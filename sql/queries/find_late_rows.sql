-- find_late_rows: rows of attached tables that are to be written now, so many of each table at
--   most, those first that have been due for longest: (source, row_key, is_refused, seconds).
-- $1 int8 most
SELECT l.source, l.row_key, l.is_refused, extract(epoch FROM clock_timestamp() - l.since)::float8 AS seconds
FROM hybrid_runner.sources AS s
CROSS JOIN LATERAL (
    SELECT r.source, r.row_key, r.is_refused, r.since
    FROM hybrid_runner.late_rows AS r
    WHERE r.source = s.id AND r.next_try_at <= clock_timestamp()
    ORDER BY r.next_try_at
    LIMIT $1
) AS l
ORDER BY s.id
