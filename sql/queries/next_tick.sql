-- next_tick: how long until the earliest schedule is due that may fire; NULL: there is none.
-- $1 bool past
-- odd: without $1, of those that are not due yet.
SELECT hybrid_runner.next_tick($1)
