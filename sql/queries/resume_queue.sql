-- resume_queue: workers claim from this queue again; false if it was not paused.
-- $1 text queue
SELECT hybrid_runner.resume($1)
