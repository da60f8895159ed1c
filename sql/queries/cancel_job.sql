-- cancel_job: ends a queued job, asks a running one to stop; says cancelled, requested, finished
--   or unknown.
-- $1 int8 id, $2 text reason
SELECT hybrid_runner.cancel($1, $2)
