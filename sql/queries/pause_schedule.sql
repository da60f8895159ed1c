-- pause_schedule: let a schedule fire no more; false if it was paused already, or is not there.
-- $1 text name
SELECT hybrid_runner.pause_schedule($1)
