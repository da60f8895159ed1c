-- signals_channel: where workers are notified of signals. Its name is known to nobody who may not
-- call this: LISTEN needs no right, and the messages are keys.
CREATE OR REPLACE FUNCTION hybrid_runner.signals_channel() RETURNS text
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
    SELECT 'hybrid_runner.~signals~'
        || to_hex(pg_sequence_last_value('hybrid_runner.changes_channel_number'))
$$;
