-- keep_jobs: how long ended jobs are kept, by state and kind ('': all others).
-- $1 text[] states, $2 interval[] keeps, $3 text[] kinds
-- odd: in order, so that workers that start together do not wait for each other in a circle.
SELECT hybrid_runner.keep(rule.state, rule.keep, rule.kind)
FROM (
    SELECT r.state, r.keep, r.kind FROM unnest($1::text[], $2::interval[], $3::text[]) AS r (state, keep, kind) ORDER BY r.state, r.kind
) AS rule
