-- begin: how the transaction of a migration begins: no name of ours is looked for where others may
-- make one, and nobody is held up for long by a lock that this waits for.
SET LOCAL search_path = pg_catalog, pg_temp;
SET LOCAL lock_timeout = '2s';
