-- give_free_keys: give keys that nobody has to the jobs that sleep until they are free; returns how
--   many were given one.
SELECT hybrid_runner.give_free_keys()
