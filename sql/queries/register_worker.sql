-- register_worker: write down who works, and give it its claim numbers; a worker that comes back under its old name takes it over.
-- $1 text id, $2 text host, $3 int4 pid, $4 text version, $5 jsonb queues, $6 interval lease
-- odd: the number is on disk before the worker claims anything, so it is not given out again after a crash.
INSERT INTO hybrid_runner.workers (id, host, pid, version, queues, lease) VALUES ($1, $2, $3, $4, $5, $6)
ON CONFLICT (id) DO UPDATE SET
    host = excluded.host, pid = excluded.pid, version = excluded.version, queues = excluded.queues, lease = excluded.lease,
    started_at = clock_timestamp(), heartbeat_at = clock_timestamp()
RETURNING nextval('hybrid_runner.claims') AS number
