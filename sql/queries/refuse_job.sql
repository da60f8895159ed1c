-- refuse_job: end a job as failed that could not be claimed; says whether it was moved.
-- $1 int8 id, $2 int8 claim, $3 text error
-- odd: by $2 it may have been claimed already: the server did, and its answer could not be read.
WITH own AS MATERIALIZED (
    SELECT j.id
    FROM hybrid_runner.jobs AS j
    WHERE j.id = $1 AND (j.state = 'queued' OR j.claim = $2)
    FOR UPDATE OF j SKIP LOCKED
)
SELECT e.id
FROM hybrid_runner.end_jobs(
    ARRAY(SELECT o.id FROM own AS o), NULL, ARRAY['failed'], ARRAY[NULL::text], ARRAY[$3]
) AS e (id)
