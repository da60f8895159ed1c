-- retry_job: a finished job runs again, a waiting one runs now; says queued, running, key_taken
--   or unknown.
-- $1 int8 id
SELECT hybrid_runner.retry($1)
