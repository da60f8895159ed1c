-- read_payload: what a claimed job carries; no row when it is no longer this claim's.
-- $1 int8 id, $2 int8 claim
SELECT j.payload, j.data FROM hybrid_runner.jobs AS j WHERE j.id = $1 AND j.claim = $2
