-- mute_bell: inserts into the queue do not ring for a moment; true when somebody sleeps and was
--   rung for help.
-- $1 text queue, $2 int4 milliseconds, $3 text mode, $4 bool leave_sleepers
-- odd: on the listener's session alone: it is that session which no longer sleeps.
SELECT hybrid_runner.mute_bell($1, $2, $3, $4)
