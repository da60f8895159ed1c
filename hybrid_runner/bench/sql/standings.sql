-- standings: a row for each service that jobs of their own poll, and these jobs, evenly spread.
CREATE SCHEMA hybrid_runner_bench;

CREATE TABLE hybrid_runner_bench.standings (
    service_id bigint PRIMARY KEY,
    due_at timestamptz,
    polled_at timestamptz,
    ok boolean,
    latency_ms integer
) WITH (fillfactor = 60);
