-- prune: delete what is no longer kept, a bounded amount a call; returns what was done: (what,
--   partition, bytes).
-- $1 int4 most
-- odd: `what` is 'dropped', 'emptied' (rows gone, table not yet), 'rewritten', 'merged' (small
--   old ones into one), 'kept' (nothing
--   to delete in it), 'blocked' (somebody holds it) or 'busy' (another prunes).
SELECT p.what, p.partition, p.bytes FROM hybrid_runner.prune($1) AS p
