-- mute_bell: mute the bell for so many milliseconds, and leave the table of sleepers if told to.
-- True: another session sleeps and was rung for help; a worker that looks itself keeps its mute
-- even so, a full one does not.
-- mode: 'looking' (let them sleep), 'saturated' (ring for help), 'full' (undo the mute and ring for
-- help)
CREATE OR REPLACE FUNCTION hybrid_runner.mute_bell(
    queue text, milliseconds integer, mode text, leave_sleepers boolean
) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    its_bell regclass;
BEGIN
    SELECT q.doorbell INTO its_bell FROM hybrid_runner.queues AS q WHERE q.name = mute_bell.queue;
    IF NOT FOUND THEN -- somebody has deleted it
        its_bell := hybrid_runner.open_queue(mute_bell.queue);
    END IF;
    IF leave_sleepers THEN
        UPDATE hybrid_runner.sleepers AS s SET is_asleep = false
        WHERE s.queue = mute_bell.queue AND s.pid = pg_backend_pid() AND s.is_asleep;
    END IF;
    PERFORM setval(its_bell, (extract(epoch FROM clock_timestamp()) * 1000)::bigint + milliseconds);
    -- Muted first, asked afterwards, with a newer snapshot: a worker that falls asleep has
    -- committed its row before it opens the bell, so either the row is seen here or this mute is
    -- undone. The row of a session that has ended says nothing.
    IF mode = 'looking' OR NOT EXISTS (
        SELECT FROM hybrid_runner.sleepers AS s
        WHERE s.queue = mute_bell.queue AND s.is_asleep AND s.pid <> pg_backend_pid()
            AND EXISTS (SELECT FROM pg_stat_get_activity(s.pid))
    ) THEN
        RETURN false;
    END IF;
    IF mode = 'full' THEN
        PERFORM setval(its_bell, 0);
    END IF;
    PERFORM hybrid_runner.notify_if_room('hybrid_runner.' || queue, 'help');
    RETURN true;
END
$$;
