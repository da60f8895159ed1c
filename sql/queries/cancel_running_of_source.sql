-- cancel_running_of_source: tell the running jobs of a source to stop; how many are told.
-- $1 int4 source, $2 text reason
SELECT count(hybrid_runner.cancel(j.id, $2))::int4 AS told
FROM (
    SELECT q.id FROM hybrid_runner.jobs AS q
    WHERE q.source = $1 AND q.state = 'running' AND q.cancel_requested_at IS NULL
    LIMIT 10000
) AS j
