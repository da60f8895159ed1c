-- settles: milliseconds that the settling of a batch took: on average, and the longest.
SELECT
    coalesce(sum(s.total_exec_time) / nullif(sum(s.calls), 0), 0) AS mean,
    coalesce(max(s.max_exec_time), 0) AS longest, coalesce(sum(s.calls), 0)::bigint AS calls
FROM pg_stat_statements AS s JOIN pg_database AS d ON d.oid = s.dbid
WHERE d.datname = current_database() AND s.query LIKE '%hybrid_runner.end_jobs(%'
