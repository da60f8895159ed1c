-- changes_channel: where event streams are notified of changes of jobs. Its name is known to nobody
-- who may not call this: LISTEN needs no right.
CREATE OR REPLACE FUNCTION hybrid_runner.changes_channel() RETURNS text
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
    SELECT 'hybrid_runner.~changes~'
        || to_hex(pg_sequence_last_value('hybrid_runner.changes_channel_number'))
$$;
