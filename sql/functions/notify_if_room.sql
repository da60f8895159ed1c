-- notify_if_room: pg_notify, unless the server's queue of notifications is half full; false: it is.
-- Once it is full, every transaction that has notified fails at its commit, and whoever may connect
-- can fill it. Who hears nothing polls.
CREATE OR REPLACE FUNCTION hybrid_runner.notify_if_room(
    channel text, message text
) RETURNS boolean
LANGUAGE plpgsql
AS $$
BEGIN
    IF pg_catalog.pg_notification_queue_usage() >= 0.5 THEN
        RETURN false;
    END IF;
    PERFORM pg_catalog.pg_notify(channel, message);
    RETURN true;
END
$$;
