-- mute_bell: mute the bell for so many milliseconds, after dropping the sleep lock if told to.
-- True: somebody sleeps and was rung for help; a worker that looks itself keeps its mute even so, a
-- full one does not.
-- mode: 'looking' (let them sleep), 'saturated' (ring for help), 'full' (undo the mute and ring for
-- help)
-- The sleep lock is explained in open_bell.sql.
CREATE OR REPLACE FUNCTION hybrid_runner.mute_bell(
    queue text, milliseconds integer, mode text, drop_sleep_lock boolean
) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    its_bell regclass;
    place integer;
BEGIN
    SELECT q.doorbell, q.number INTO its_bell, place FROM hybrid_runner.queues AS q
    WHERE q.name = mute_bell.queue;
    IF NOT FOUND THEN -- somebody has deleted it
        PERFORM hybrid_runner.open_queue(mute_bell.queue);
        SELECT q.doorbell, q.number INTO STRICT its_bell, place FROM hybrid_runner.queues AS q
        WHERE q.name = mute_bell.queue;
    END IF;
    IF drop_sleep_lock THEN
        PERFORM pg_advisory_unlock_shared(1212371538, place);
    END IF;
    PERFORM setval(its_bell, (extract(epoch FROM clock_timestamp()) * 1000)::bigint + milliseconds);
    -- Muted first, asked afterwards: a worker that falls asleep in between opens the bell again.
    IF mode = 'looking' OR pg_try_advisory_xact_lock(1212371538, place) THEN
        RETURN false;
    END IF;
    -- Another worker that asks at this moment holds it too: look closely.
    IF NOT EXISTS (
        SELECT FROM pg_locks AS l
        WHERE l.locktype = 'advisory' AND l.mode = 'ShareLock' AND l.granted
            AND l.classid = 1212371538 AND l.objid = place::oid AND l.objsubid = 2
            AND l.database = (SELECT d.oid FROM pg_database AS d
                WHERE d.datname = current_database())
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
