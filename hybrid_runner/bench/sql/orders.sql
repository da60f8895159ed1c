-- orders: an application's table as many have one, twice; one of them is attached.
CREATE SCHEMA hybrid_runner_bench;

CREATE TABLE hybrid_runner_bench.orders (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    status text NOT NULL DEFAULT 'pending',
    note integer NOT NULL DEFAULT 0,
    worker_id text,
    started_at timestamptz,
    finished_at timestamptz,
    retry_count integer,
    result jsonb,
    error text,
    created_at timestamptz NOT NULL DEFAULT now()
);

CREATE INDEX ON hybrid_runner_bench.orders (status, created_at);

CREATE TABLE hybrid_runner_bench.plain (LIKE hybrid_runner_bench.orders INCLUDING ALL);
