-- forget_payload: take out of a job what cannot be read, so that it can end.
-- $1 int8 id, $2 int8 claim
-- odd: a job that could not be claimed is queued and has no claim.
-- odd: its time is over from now on: should whoever forgot it die before the job has ended, it
--   must not run without what it carried.
UPDATE hybrid_runner.jobs AS j SET
    payload = 'null', data = NULL, progress = NULL, errors = NULL, history = NULL, finish_by = '1970-01-01 UTC', version = j.version + 1
WHERE j.id = $1 AND (j.state = 'queued' OR j.claim = $2)
