-- register_worker: write down who works; a worker that comes back under its old name takes it over.
-- $1 text id, $2 text host, $3 int4 pid, $4 text version, $5 jsonb queues, $6 interval lease, $7 text kinds
-- odd: first_claim is on disk before the worker claims anything, so its numbers are not given out again after a crash.
-- odd: a number from the sequence is good for 10^11 claims: three years of a thousand looks a second.
WITH number AS MATERIALIZED (
    SELECT nextval('hybrid_runner.claims') * 100000000000 AS first_claim
)
INSERT INTO hybrid_runner.workers (id, host, pid, version, queues, lease, kinds, first_claim)
SELECT $1, $2, $3, $4, $5, $6, $7, n.first_claim FROM number AS n
ON CONFLICT (id) DO UPDATE SET
    host = excluded.host, pid = excluded.pid, version = excluded.version, queues = excluded.queues, lease = excluded.lease,
    kinds = excluded.kinds, first_claim = excluded.first_claim, steady_since = '-infinity', dead_at = NULL, rescued_at = NULL,
    started_at = clock_timestamp(), heartbeat_at = clock_timestamp()
RETURNING first_claim, xmax <> 0 AS took_over
