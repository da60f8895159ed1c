-- look_up_kinds: of each of these kinds its handler's queue (`default` if no worker has declared
--   it) and, if it looks like a typo, the kind that was most likely meant.
-- $1 text[] kinds
SELECT n.kind, hybrid_runner.queue_of(n.kind) AS queue, hybrid_runner.similar_kind(n.kind) AS meant
FROM pg_catalog.unnest($1::text[]) AS n (kind)
