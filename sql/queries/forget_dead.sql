-- forget_dead: remove workers that were declared dead a while ago; until then their jobs are
--   looked for repeatedly.
-- $1 interval longer_than
DELETE FROM hybrid_runner.workers AS w WHERE w.dead_at NOT BETWEEN clock_timestamp() - $1::interval AND clock_timestamp() + interval '1 second'
