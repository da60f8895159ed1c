-- notify_if_room: pg_notify, unless the server's queue of notifications is half full, or the
-- session has set hybrid_runner.quiet; false: it was not sent.
-- Once the queue is full, every transaction that has notified fails at its commit, and whoever may
-- connect can fill it. Who hears nothing polls. And a transaction that has notified cannot be
-- prepared, which a commit in two phases needs.
CREATE OR REPLACE FUNCTION hybrid_runner.notify_if_room(
    channel text, message text
) RETURNS boolean
LANGUAGE plpgsql
AS $$
BEGIN
    -- of one type on both sides, for which nobody can make an operator that fits better
    IF pg_catalog.pg_notification_queue_usage() >= double precision '0.5' OR coalesce(
        nullif(pg_catalog.current_setting('hybrid_runner.quiet', true), ''), 'off')::boolean THEN
        RETURN false;
    END IF;
    PERFORM pg_catalog.pg_notify(channel, message);
    RETURN true;
END
$$;
