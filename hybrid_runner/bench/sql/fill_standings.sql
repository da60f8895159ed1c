-- fill_standings: services with jobs of their own, that come due evenly spread over the interval.
-- $1 text[] urls, $2 float8 seconds
WITH services AS (
    INSERT INTO hybrid_runner_bench.standings (service_id)
    SELECT number FROM generate_series(1, cardinality($1::text[])) AS number
    RETURNING service_id
)
INSERT INTO hybrid_runner.jobs (queue, kind, payload, run_at)
SELECT
    'bench', 'service', jsonb_build_object('id', service_id, 'url', ($1::text[])[service_id]),
    clock_timestamp() + make_interval(secs => $2::float8 * random())
FROM services
