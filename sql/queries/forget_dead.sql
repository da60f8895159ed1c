-- forget_dead: remove workers that were declared dead a while ago; until then their jobs are
--   looked for repeatedly.
-- $1 interval longer_than
DELETE FROM hybrid_runner.workers AS w WHERE w.dead_at + $1 < clock_timestamp()
