-- next_ticks: the next times that a cron expression names.
-- $1 text cron, $2 text timezone, $3 int4 most
SELECT t.tick FROM hybrid_runner.next_ticks($1, $2, $3) AS t (tick)
