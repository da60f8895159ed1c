-- register_worker: store a worker; one that comes back under its old name takes that row over.
-- $1 text id, $2 text host, $3 int4 pid, $4 text version, $5 jsonb queues, $6 interval lease,
-- $7 text kinds_hash, $8 text[] kinds, $9 text[] schedules
-- odd: first_claim is on disk before the worker claims anything, so its numbers are not given out
--   again after a crash.
-- odd: a number from the sequence is good for 5 * 10^10 claims: a year and a half of a thousand
--   looks a second. They begin
--   anywhere in the first half of 10^11: a standby that was behind when it was promoted may
--   give out the number again.
-- odd: whoever comes new does not know for how long the others could not reach the server (a
--   lock, an outage, a failover), so it waits out their lease: unbroken_since is now.
WITH number AS MATERIALIZED (
    SELECT nextval('hybrid_runner.claims') * 100000000000 + (random() * 50000000000)::int8 AS first_claim
)
INSERT INTO hybrid_runner.workers (id, host, pid, version, queues, lease, kinds_hash, kinds, schedules, first_claim, unbroken_since)
SELECT $1, $2, $3, $4, $5, $6, $7, $8, $9, n.first_claim, clock_timestamp() FROM number AS n
ON CONFLICT (id) DO UPDATE SET
    host = excluded.host, pid = excluded.pid, version = excluded.version, queues = excluded.queues, lease = excluded.lease,
    kinds_hash = excluded.kinds_hash, kinds = excluded.kinds, schedules = excluded.schedules, first_claim = excluded.first_claim, unbroken_since = excluded.unbroken_since,
    suspected_at = NULL, dead_at = NULL, rescued_at = NULL, started_at = clock_timestamp(), heartbeat_at = clock_timestamp(), running = '{}'
RETURNING first_claim, xmax <> 0 AS took_over
