-- Logins with the least rights, to be run by the owner of the schema once `hybrid-runner migrate` has made it; again changes passwords.
--   WORKER_PASSWORD=… PRODUCER_PASSWORD=… READER_PASSWORD=… psql "$OWNER_DSN" -f deploy/roles.sql
-- A password that is not given leaves that login without one: nobody comes in by it.
\set ON_ERROR_STOP on
\set QUIET on
\set worker_password ''
\set producer_password ''
\set reader_password ''
\getenv worker_password WORKER_PASSWORD
\getenv producer_password PRODUCER_PASSWORD
\getenv reader_password READER_PASSWORD

-- jobs_worker: claims and settles. jobs_producer: puts jobs in. jobs_reader: for people and autoscalers.
SELECT format('CREATE ROLE %I LOGIN IN ROLE %I', 'jobs_' || name, 'hybrid_runner_' || name)
FROM unnest(ARRAY['worker', 'producer', 'reader']) AS name
WHERE to_regrole('jobs_' || name) IS NULL
\gexec
SET log_statement = 'none';
ALTER ROLE jobs_worker PASSWORD :'worker_password';
ALTER ROLE jobs_producer PASSWORD :'producer_password';
ALTER ROLE jobs_reader PASSWORD :'reader_password';
