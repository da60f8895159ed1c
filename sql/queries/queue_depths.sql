-- queue_depths: how many jobs each queue has in each state, counted up to a limit and estimated
--   beyond.
SELECT f.queue, f.due, f.scheduled, f.running, f.oldest_due, f.paused, f.workers, f.opened
FROM hybrid_runner.queue_depths() AS f
