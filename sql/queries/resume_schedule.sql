-- resume_schedule: let a schedule fire again; false if it was not paused, or is not there.
-- $1 text name
SELECT hybrid_runner.resume_schedule($1)
