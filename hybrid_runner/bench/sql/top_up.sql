-- top_up: put in as many no-op jobs as there are fewer than so many queued.
-- $1 int8 most
INSERT INTO hybrid_runner.jobs (queue, kind, priority)
SELECT 'bench', 'noop', 9
FROM generate_series(1, $1 - (
    SELECT count(*)
    FROM (
        SELECT FROM hybrid_runner.jobs AS j WHERE j.state = 'queued' AND j.queue = 'bench' AND j.priority = 9 LIMIT $1
    ) AS queued
))
