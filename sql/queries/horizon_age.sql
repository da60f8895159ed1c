-- horizon_age: for how many seconds somebody has kept vacuum from cleaning up.
SELECT hybrid_runner.horizon_age() AS seconds
