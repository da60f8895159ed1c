-- forget_dead: remove workers that were declared dead a while ago; what they ran was put back
--   again and again until then.
-- $1 interval longer_than
DELETE FROM hybrid_runner.workers AS w WHERE w.dead_at + $1 < clock_timestamp()
