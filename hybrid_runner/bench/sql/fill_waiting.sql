-- fill_waiting: jobs that look again every so often, evenly spread over that time.
-- $1 int8 jobs, $2 float8 seconds
INSERT INTO hybrid_runner.jobs (queue, kind, payload, run_at)
SELECT 'bench', 'poll', to_jsonb($2::float8), clock_timestamp() + make_interval(secs => $2::float8 * number / $1)
FROM generate_series(1, $1::int8) AS number
