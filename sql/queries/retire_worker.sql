-- retire_worker: this worker ended in an orderly way.
-- $1 text id
DELETE FROM hybrid_runner.workers WHERE id = $1
