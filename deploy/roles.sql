-- The roles to which `hybrid-runner migrate` grants rights, logins with the least of them, the owner of the schema, and a database that
-- no other login of its server comes into. Once, before the first migration, in the database of the jobs: as a superuser, or as the owner of
-- that database who has CREATEROLE. No login that is made here has it: on PostgreSQL 14 and 15 it is as good as the server's own account.
--   OWNER_PASSWORD=… WORKER_PASSWORD=… PRODUCER_PASSWORD=… READER_PASSWORD=… psql "$DSN" --file deploy/roles.sql
-- Again, it changes the passwords that are given. A login that was never given one lets nobody in by password.
--
-- LOGINS=shop makes shop_owner, shop_worker, shop_producer and shop_reader instead of jobs_owner and so on. Logins and roles belong to the
-- whole server: where it has several databases with jobs, give each a word of its own, so that no login reads the jobs of another.
-- KEEP_PUBLIC=yes lets everybody connect who could before; docs/security.md says what they can do then.
\set ON_ERROR_STOP on
\getenv owner_password OWNER_PASSWORD
\getenv worker_password WORKER_PASSWORD
\getenv producer_password PRODUCER_PASSWORD
\getenv reader_password READER_PASSWORD
\getenv keep_public KEEP_PUBLIC
\set logins jobs
\getenv logins LOGINS
-- So that no function is called that somebody else has made.
SET search_path = pg_catalog, pg_temp;

-- Rights come with the migration, and with the next one if a role is made after it.
SELECT format('CREATE ROLE %I NOLOGIN', name)
FROM unnest(ARRAY[
    'hybrid_runner_producer', 'hybrid_runner_worker', 'hybrid_runner_reader', 'hybrid_monitors_editor'
]) AS name
WHERE to_regrole(name) IS NULL
\gexec

-- NAME_owner migrates, NAME_worker claims and settles, NAME_producer puts jobs in, NAME_reader is for people and autoscalers.
SELECT format('CREATE ROLE %I LOGIN', :'logins' || '_owner')
WHERE to_regrole(quote_ident(:'logins' || '_owner')) IS NULL
UNION ALL
SELECT format('CREATE ROLE %I LOGIN IN ROLE %I', :'logins' || '_' || name, 'hybrid_runner_' || name)
FROM unnest(ARRAY['worker', 'producer', 'reader']) AS name
WHERE to_regrole(quote_ident(:'logins' || '_' || name)) IS NULL
\gexec
SELECT
    :'logins' || '_owner' AS owner, :'logins' || '_worker' AS worker, :'logins' || '_producer' AS producer,
    :'logins' || '_reader' AS reader
\gset
\if :{?owner_password}
ALTER ROLE :"owner" PASSWORD :'owner_password';
\endif
\if :{?worker_password}
ALTER ROLE :"worker" PASSWORD :'worker_password';
\endif
\if :{?producer_password}
ALTER ROLE :"producer" PASSWORD :'producer_password';
\endif
\if :{?reader_password}
ALTER ROLE :"reader" PASSWORD :'reader_password';
\endif

-- The owner makes the schemas. A login that can connect can send and hear all notifications of the database.
SELECT format('GRANT CONNECT, CREATE ON DATABASE %I TO %I', current_database(), :'owner')
UNION ALL
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
