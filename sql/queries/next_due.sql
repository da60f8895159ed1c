-- next_due: how long until the next queued job of one queue is due, if any is not due yet.
-- $1 text queue
-- odd: the far future is left out, since infinity minus now is nothing that can be waited for
--   (before 17 an error).
-- odd: one index probe a lane; a plain min() over the queue would walk every job that is already
--   due.
SELECT min(later.run_at) - clock_timestamp() AS delay
FROM generate_series(0, 9) AS lane (priority)
CROSS JOIN LATERAL (
    SELECT j.run_at
    FROM hybrid_runner.jobs AS j
    WHERE j.state = 'queued' AND j.queue = $1 AND j.priority = lane.priority AND j.run_at > now() AND j.run_at < now() + interval '3650 days'
    ORDER BY j.run_at
    LIMIT 1
) AS later
