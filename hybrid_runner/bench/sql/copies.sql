-- copies: two tables like jobs, one without a trigger and one that notifies at every insert.
CREATE SCHEMA hybrid_runner_bench;

CREATE TABLE hybrid_runner_bench.quiet (LIKE hybrid_runner.jobs INCLUDING ALL);

CREATE TABLE hybrid_runner_bench.loud (LIKE hybrid_runner.jobs INCLUDING ALL);

CREATE FUNCTION hybrid_runner_bench.notify() RETURNS trigger
LANGUAGE plpgsql
AS $$
BEGIN
    PERFORM pg_notify('hybrid_runner_bench', '');
    RETURN NULL;
END
$$;

CREATE TRIGGER notify AFTER INSERT ON hybrid_runner_bench.loud
FOR EACH STATEMENT EXECUTE FUNCTION hybrid_runner_bench.notify();
