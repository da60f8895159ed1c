-- drop_our_jobs: the schema was there before the benchmark, without jobs and without our queue.
DROP SCHEMA IF EXISTS hybrid_runner_bench CASCADE;
TRUNCATE hybrid_runner.jobs, hybrid_runner.archive;
DO $$
DECLARE
    doorbell text;
BEGIN
    DELETE FROM hybrid_runner.queues AS q WHERE q.name = 'bench' RETURNING q.doorbell INTO doorbell;
    IF doorbell IS NOT NULL THEN
        EXECUTE 'DROP SEQUENCE IF EXISTS ' || doorbell;
    END IF;
END
$$;
