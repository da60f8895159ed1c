-- wake_waiting: make those of these jobs due whose signal is there; returns their ids.
-- $1 int8[] ids
-- odd: it is for jobs that have just been put back, once that is committed: a signal that was
--   committed meanwhile found nobody who waited.
SELECT w.id FROM hybrid_runner.wake_waiting($1) AS w (id)
