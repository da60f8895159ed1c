-- pause_queue: no worker claims from this queue until it is resumed; false if it was paused
--   already.
-- $1 text queue
SELECT hybrid_runner.pause($1)
