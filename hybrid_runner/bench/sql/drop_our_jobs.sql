-- drop_our_jobs: the schema was there before the benchmark, without jobs and without our queue.
DROP SCHEMA IF EXISTS hybrid_runner_bench CASCADE;
TRUNCATE hybrid_runner.jobs, hybrid_runner.archive;
DO $$
DECLARE
    bell text;
BEGIN
    DELETE FROM hybrid_runner.queues AS q WHERE q.name = 'bench' RETURNING q.doorbell INTO bell;
    IF bell IS NOT NULL THEN
        EXECUTE 'DROP SEQUENCE IF EXISTS ' || bell;
    END IF;
END
$$;
