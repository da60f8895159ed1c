-- find_growth: what lets tables grow, and who is to blame: (cause, complaint).
-- $1 interval longer_than
SELECT g.cause, g.complaint FROM hybrid_runner.find_growth($1) AS g
