-- why: who is working, where, on what, and when it was last heard of
-- locks: none that matters (creates new objects only)

-- Silent for longer than its lease, a worker counts as dead.
CREATE TABLE hybrid_runner.workers (
    id text PRIMARY KEY,
    host text NOT NULL,
    pid integer NOT NULL,
    version text NOT NULL,
    queues jsonb NOT NULL,
    started_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    heartbeat_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    lease interval NOT NULL DEFAULT '30 seconds'
);
