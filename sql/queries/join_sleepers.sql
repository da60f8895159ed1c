-- join_sleepers: this session sleeps on these queues; to be committed before their bells are
--   opened.
-- $1 text[] queues
-- odd: on the listener's session alone: that it sleeps has to end with it.
SELECT hybrid_runner.join_sleepers($1)
