-- Logins with the least rights, once `hybrid-runner migrate` has run. As whoever made the roles hybrid_runner_worker and so on: the
-- owner of the schema if that may make roles, else who made them beforehand. It takes CREATEROLE and the right to grant them.
--   WORKER_PASSWORD=… PRODUCER_PASSWORD=… READER_PASSWORD=… psql "$DSN" --file deploy/roles.sql
-- Again, it changes the passwords that are given. A login that was never given one lets nobody in by password.
\set ON_ERROR_STOP on
\getenv worker_password WORKER_PASSWORD
\getenv producer_password PRODUCER_PASSWORD
\getenv reader_password READER_PASSWORD

-- jobs_worker claims and settles, jobs_producer puts jobs in, jobs_reader is for people and autoscalers.
SELECT format('CREATE ROLE %I LOGIN IN ROLE %I', 'jobs_' || name, 'hybrid_runner_' || name)
FROM unnest(ARRAY['worker', 'producer', 'reader']) AS name
WHERE to_regrole('jobs_' || name) IS NULL
\gexec
\if :{?worker_password}
ALTER ROLE jobs_worker PASSWORD :'worker_password';
\endif
\if :{?producer_password}
ALTER ROLE jobs_producer PASSWORD :'producer_password';
\endif
\if :{?reader_password}
ALTER ROLE jobs_reader PASSWORD :'reader_password';
\endif
