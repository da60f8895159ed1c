-- release_lost: put back, uncharged, what a claim took whose answer never arrived; returns the ids put back.
-- $1 text queue, $2 text worker_id, $3 int8[] known, $4 int8[] claims
-- odd: id and claim: a crash may have undone the claim under which a job runs here, and a lost one taken the same job again.
-- odd: only right while this worker has no claim of this queue on its way; it walks the table, and runs after failures alone.
WITH released AS (
    UPDATE hybrid_runner.jobs AS j SET
        state = 'queued',
        run_at = clock_timestamp(), -- never behind a frontier
        attempt = j.attempt - 1,
        claim = NULL,
        worker_id = NULL,
        started_at = NULL,
        version = j.version + 1
    WHERE j.queue = $1 AND j.worker_id = $2 AND j.state = 'running'
        AND NOT EXISTS (SELECT FROM unnest($3::int8[], $4::int8[]) AS k (id, claim) WHERE k.id = j.id AND k.claim = j.claim)
    RETURNING j.id, j.queue
)
SELECT r.id
FROM released AS r
WHERE (
    SELECT count(hybrid_runner.ring(n.queue, now())) FROM (SELECT DISTINCT q.queue FROM released AS q) AS n
) IS NOT NULL
