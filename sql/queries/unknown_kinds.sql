-- unknown_kinds: kinds of which jobs have been due for a while and that no live worker of their
--   queue knows.
-- $1 interval due_for
SELECT u.queue, u.kind, u.due, u.oldest_due, u.elsewhere, u.meant
FROM hybrid_runner.unknown_kinds(due_for => $1) AS u
