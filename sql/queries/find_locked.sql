-- find_locked: which of these jobs somebody else holds a lock on right now.
-- $1 int8[] ids
WITH free AS MATERIALIZED (
    SELECT j.id FROM hybrid_runner.jobs AS j WHERE j.id = ANY ($1) FOR UPDATE SKIP LOCKED
)
SELECT j.id FROM hybrid_runner.jobs AS j WHERE j.id = ANY ($1) AND NOT EXISTS (SELECT FROM free AS f WHERE f.id = j.id)
