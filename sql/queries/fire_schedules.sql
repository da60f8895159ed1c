-- fire_schedules: make the jobs of schedules that are due.
-- $1 int4 most
-- odd: anybody may call it at any time: what another call is just firing is left out.
SELECT f.schedule, f.tick, f.outcome, f.ticks, f.job_id, f.late
FROM hybrid_runner.fire_schedules($1) AS f
