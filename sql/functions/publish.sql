-- publish: notify event streams that a job changed, if anybody reads one.
-- Messages, from here and from workers: 'QUEUE KIND MORE ID ID …', MORE being how many ids had no
-- room.
-- For changes that no worker makes and that come one by one; inserts are found by those who read,
-- so that they need not say it.
CREATE OR REPLACE FUNCTION hybrid_runner.publish(queue text, kind text, id bigint) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    IF hybrid_runner.readers_left_ms() > 0 THEN
        PERFORM hybrid_runner.notify_if_room(
            hybrid_runner.changes_channel(), format('%s %s 0 %s', queue, kind, id));
    END IF;
END
$$;
