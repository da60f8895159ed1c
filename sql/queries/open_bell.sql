-- open_bell: from now on every insert into the queue rings.
-- $1 text queue
SELECT hybrid_runner.open_bell($1)
