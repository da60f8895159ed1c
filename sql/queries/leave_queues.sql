-- leave_queues: this worker takes no more jobs, and others no longer count on it; it lives until
--   the jobs that it runs have ended.
-- $1 text id, $2 int8 first_claim
UPDATE hybrid_runner.workers AS w SET queues = '{}' WHERE w.id = $1 AND w.first_claim = $2
