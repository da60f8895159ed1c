-- leave_queues: this worker takes no more jobs, and nobody shall count on it; it lives on for
--   those that it runs.
-- $1 text id, $2 int8 first_claim
UPDATE hybrid_runner.workers AS w SET queues = '{}' WHERE w.id = $1 AND w.first_claim = $2
