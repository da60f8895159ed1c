-- save_data: the memory of running jobs; returns the ids written, a stale claim writes nothing.
-- $1 int8[] ids, $2 int8[] claims, $3 jsonb[] data
UPDATE hybrid_runner.jobs AS j SET data = s.data, version = j.version + 1
FROM unnest($1::int8[], $2::int8[], $3::jsonb[]) AS s (id, claim, data)
WHERE j.id = ANY ($1) AND j.id = s.id AND j.claim = s.claim
RETURNING j.id
