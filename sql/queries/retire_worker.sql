-- retire_worker: this worker ended; if not in order, others rescue the jobs that it leaves.
-- $1 text id, $2 int8 first_claim, $3 bool in_order
WITH gone AS (
    DELETE FROM hybrid_runner.workers AS w WHERE w.id = $1 AND w.first_claim = $2 AND $3
)
UPDATE hybrid_runner.workers AS w SET dead_at = clock_timestamp() WHERE w.id = $1 AND w.first_claim = $2 AND NOT $3
