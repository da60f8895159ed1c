-- write_standing: what one poll found.
-- $1 int8 service, $2 bool ok, $3 int4 milliseconds, $4 float8 seconds
UPDATE hybrid_runner_bench.standings
SET due_at = now() + make_interval(secs => $4), polled_at = now(), ok = $2, latency_ms = $3
WHERE service_id = $1
