-- refuse_job: end a job as failed that could not be claimed; says whether it was moved.
-- $1 int8 id, $2 int8 claim, $3 text error, $4 bool unreadable
-- odd: by $2 it may have been claimed already: the server did, and its answer could not be read.
-- odd: of a job that is unreadable, payload and data are neither read nor kept.
WITH own AS MATERIALIZED (
    SELECT j.id
    FROM hybrid_runner.jobs AS j
    WHERE j.id = $1 AND (j.state = 'queued' OR j.claim = $2)
    FOR UPDATE OF j SKIP LOCKED
)
SELECT e.id
FROM hybrid_runner.end_jobs(
    ARRAY(SELECT o.id FROM own AS o), NULL, ARRAY['failed'], ARRAY[NULL::text], ARRAY[$3], unreadable => $4
) AS e (id)
