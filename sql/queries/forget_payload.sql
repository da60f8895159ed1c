-- forget_payload: take out of a claimed job what cannot be read, so that it can end.
-- $1 int8 id, $2 int8 claim
UPDATE hybrid_runner.jobs AS j SET payload = 'null', data = NULL, progress = NULL, errors = NULL, version = j.version + 1
WHERE j.id = $1 AND j.claim = $2
