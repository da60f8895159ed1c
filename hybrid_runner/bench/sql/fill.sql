-- fill: put many jobs in.
-- $1 text kind, $2 int4 priority, $3 interval delay, $4 int8 jobs
INSERT INTO hybrid_runner.jobs (queue, kind, priority, run_at)
SELECT 'bench', $1, $2, clock_timestamp() + $3 FROM generate_series(1, $4)
