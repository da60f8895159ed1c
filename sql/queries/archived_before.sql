-- archived_before: which of these claims are in the archive already, when the answer to an
--   earlier settle was lost.
-- $1 int8[] ids, $2 int8[] claims
SELECT a.id
FROM hybrid_runner.archive AS a
INNER JOIN unnest($1::int8[], $2::int8[]) AS s (id, claim) ON a.id = s.id AND a.claim = s.claim
WHERE a.id = ANY ($1)
