-- events_are_read: whether somebody reads events live. What seems to last for longer than a minute
-- was written by a clock that was set back since.
CREATE OR REPLACE FUNCTION hybrid_monitors.events_are_read() RETURNS boolean
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
    SELECT coalesce(
        pg_sequence_last_value('hybrid_monitors.event_readers_until')
        - (extract(epoch FROM clock_timestamp()) * 1000)::bigint BETWEEN 1 AND 60000, false)
$$;
