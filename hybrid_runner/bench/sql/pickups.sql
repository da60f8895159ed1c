-- pickups: milliseconds from due to started, of the jobs that came due in a time.
-- $1 timestamptz from, $2 timestamptz until
SELECT
    count(*) AS jobs,
    count(*) FILTER (WHERE attempt <> 1) AS again,
    1000 * percentile_cont(0.5) WITHIN GROUP (
        ORDER BY extract(EPOCH FROM started_at - run_at)
    ) AS p50,
    1000 * percentile_cont(0.95) WITHIN GROUP (
        ORDER BY extract(EPOCH FROM started_at - run_at)
    ) AS p95,
    1000 * percentile_cont(0.99) WITHIN GROUP (
        ORDER BY extract(EPOCH FROM started_at - run_at)
    ) AS p99,
    1000 * max(extract(EPOCH FROM started_at - run_at)) AS longest
FROM hybrid_runner.archive
WHERE run_at >= $1 AND run_at < $2
