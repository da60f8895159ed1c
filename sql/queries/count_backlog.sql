-- count_backlog: how many jobs are queued or running in the given queues.
-- $1 text[] queues
SELECT queue, state, count(*) AS jobs FROM hybrid_runner.jobs WHERE queue = ANY ($1) GROUP BY queue, state
