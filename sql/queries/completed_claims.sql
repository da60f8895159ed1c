-- completed_claims: which of these claims have completed their jobs; a handler may do so itself
--   and go on.
-- $1 int8[] ids, $2 int8[] claims
SELECT a.id, a.claim
FROM hybrid_runner.archive AS a
INNER JOIN unnest($1::int8[], $2::int8[]) AS s (id, claim) ON a.id = s.id AND a.claim = s.claim
WHERE a.id = ANY ($1) AND a.state = 'completed'
