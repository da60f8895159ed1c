-- beat: this worker lives; returns its running jobs whose cancelling was asked for, in case the ring was lost.
-- $1 text worker_id, $2 int8[] running
WITH alive AS (
    UPDATE hybrid_runner.workers SET heartbeat_at = clock_timestamp() WHERE id = $1 RETURNING id
)
SELECT j.id
FROM hybrid_runner.jobs AS j
WHERE j.id = ANY ($2) AND j.state = 'running' AND j.worker_id = $1 AND j.cancel_requested_at IS NOT NULL
