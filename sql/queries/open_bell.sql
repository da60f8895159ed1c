-- open_bell: from now on every insert into the queue rings; takes the sleep lock before if told to.
-- $1 text queue, $2 bool take_sleep_lock
-- odd: on the listener's session alone: the lock has to end with it.
SELECT hybrid_runner.open_bell($1, $2)
