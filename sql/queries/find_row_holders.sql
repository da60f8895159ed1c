-- find_row_holders: who holds these rows of an attached table: (row_key, pid, role, application,
--   seconds since the transaction began).
-- $1 int4 source, $2 text[] keys
-- odd: pid 0 is a prepared transaction.
SELECT
    r.row_key, l.pid, a.usename::text AS role, a.application_name AS application,
    extract(epoch FROM clock_timestamp() - a.xact_start)::float8 AS seconds
FROM hybrid_runner.rows_of_source($1, 'held', $2, NULL) AS r
CROSS JOIN LATERAL hybrid_runner.find_lockers((SELECT s.relation FROM hybrid_runner.sources AS s WHERE s.id = $1), r.seen) AS l (pid)
LEFT JOIN pg_stat_activity AS a ON a.pid = l.pid
