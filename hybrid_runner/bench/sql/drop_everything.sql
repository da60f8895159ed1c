-- drop_everything: the schema was not there before the benchmark.
DROP SCHEMA IF EXISTS hybrid_runner_bench CASCADE;
DROP SCHEMA hybrid_runner CASCADE;
