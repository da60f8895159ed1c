-- declare_schedules: write down what this worker's code declares; rows (name, problem) for those
--   that could not be written now.
-- $1 text[] names, $2 text[] kinds, $3 text[] payloads, $4 text[] crons, $5 interval[] everys,
-- $6 timestamptz[] ats, $7 text[] timezones, $8 text[] queues, $9 int4[] priorities,
-- $10 int4[] max_attempts, $11 interval[] timeouts, $12 text[] overlaps, $13 text[] missed,
-- $14 interval[] catch_ups, $15 interval[] jitters, $16 timestamptz[] starts_at,
-- $17 timestamptz[] ends_at
SELECT d.name, d.problem
FROM hybrid_runner.declare_schedules($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17) AS d
