-- next_ticks_of: the next ticks of a schedule, and when the job of each is due.
-- $1 text name, $2 int4 most
SELECT t.tick, t.run_at FROM hybrid_runner.next_ticks_of($1, $2) AS t
