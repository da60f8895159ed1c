-- restore_jobs: store jobs of one kind whose keys no live job has; returns the keys of those that
--   were stored.
-- $1 text kind, $2 text queue, $3 text[] keys, $4 text[] payloads, $5 text[] data
-- odd: keys are taken in their own order, so that two such statements cannot wait for each other.
INSERT INTO hybrid_runner.jobs AS j (kind, queue, key, payload, data)
SELECT $1, $2, u.key, u.payload::jsonb, u.data::jsonb
FROM unnest($3::text[], $4::text[], $5::text[]) AS u (key, payload, data)
ORDER BY u.key COLLATE "C"
ON CONFLICT (key) WHERE key IS NOT NULL DO NOTHING
RETURNING j.key
