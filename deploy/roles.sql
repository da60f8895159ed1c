-- Logins with the least rights, once `hybrid-runner migrate` has run, and a database that nobody else of its server comes into.
-- In the database of the jobs, as its owner, or as whoever made the roles hybrid_runner_worker and so on. It takes CREATEROLE and
-- the right to grant those roles.
--   WORKER_PASSWORD=… PRODUCER_PASSWORD=… READER_PASSWORD=… psql "$DSN" --file deploy/roles.sql
-- Again, it changes the passwords that are given. A login that was never given one lets nobody in by password.
--
-- LOGINS=shop makes shop_worker, shop_producer and shop_reader instead of jobs_worker and so on. Logins and roles belong to the whole
-- server: where it has several databases with jobs, give each a word of its own, so that nobody reads the jobs of another.
-- KEEP_PUBLIC=yes lets everybody connect who could before; docs/security.md says what they can do then.
\set ON_ERROR_STOP on
\getenv worker_password WORKER_PASSWORD
\getenv producer_password PRODUCER_PASSWORD
\getenv reader_password READER_PASSWORD
\getenv keep_public KEEP_PUBLIC
\set logins jobs
\getenv logins LOGINS
-- So that no function is called that somebody else has made.
SET search_path = pg_catalog, pg_temp;

SELECT to_regnamespace('hybrid_runner') IS NULL AS is_elsewhere
\gset
\if :is_elsewhere
\warn 'This database has no schema hybrid_runner: name the one that hybrid-runner migrate was given.'
DO $$ BEGIN RAISE EXCEPTION 'nothing was changed'; END $$;
\endif

-- NAME_worker claims and settles, NAME_producer puts jobs in, NAME_reader is for people and autoscalers.
SELECT format('CREATE ROLE %I LOGIN IN ROLE %I', :'logins' || '_' || name, 'hybrid_runner_' || name)
FROM unnest(ARRAY['worker', 'producer', 'reader']) AS name
WHERE NOT EXISTS (SELECT FROM pg_roles AS r WHERE r.rolname = :'logins' || '_' || name)
\gexec
SELECT :'logins' || '_worker' AS worker, :'logins' || '_producer' AS producer, :'logins' || '_reader' AS reader
\gset
\if :{?worker_password}
ALTER ROLE :"worker" PASSWORD :'worker_password';
\endif
\if :{?producer_password}
ALTER ROLE :"producer" PASSWORD :'producer_password';
\endif
\if :{?reader_password}
ALTER ROLE :"reader" PASSWORD :'reader_password';
\endif

-- Whoever can connect can send and hear all notifications of the database.
SELECT format('GRANT CONNECT ON DATABASE %I TO %I, %I, %I', current_database(), :'worker', :'producer', :'reader')
\gexec
\if :{?keep_public}
\else
SELECT format('REVOKE CONNECT, TEMPORARY ON DATABASE %I FROM PUBLIC', current_database())
\gexec
SELECT has_database_privilege('public', current_database(), 'CONNECT') AS is_open, current_database() AS database
\gset
\if :is_open
\warn 'Everybody can still connect to' :database': its owner has to run this.'
\else
\echo 'Nobody but its owner, superusers and these logins can connect to' :database 'now; for others: GRANT CONNECT ON DATABASE' :database 'TO …'
\endif
\endif
