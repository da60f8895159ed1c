-- record_progress: how far running jobs are; returns the ids written, a stale claim writes nothing.
-- $1 int8[] ids, $2 int8[] claims, $3 jsonb[] progress
UPDATE hybrid_runner.jobs AS j SET progress = s.progress, version = j.version + 1
FROM unnest($1::int8[], $2::int8[], $3::jsonb[]) AS s (id, claim, progress)
WHERE j.id = ANY ($1) AND j.id = s.id AND j.claim = s.claim
RETURNING j.id
