-- why: while a worker looks by itself, inserts need not ring; whoever sleeps is known by a lock that ends with its session
-- locks: none that matters (creates new objects only)

-- The lock of those who sleep is advisory and shared: 1212371538, which means nothing else, and the queue's number.

-- Take the sleeper's lock if `lie_down`, then open the bell: in this order, so that a full worker sees the one or the other.
CREATE FUNCTION hybrid_runner.open_bell(queue text, lie_down boolean) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    bell regclass;
    place integer;
BEGIN
    SELECT q.doorbell::regclass, q.number INTO STRICT bell, place FROM hybrid_runner.queues AS q WHERE q.name = open_bell.queue;
    IF lie_down THEN
        PERFORM pg_advisory_lock_shared(1212371538, place);
    END IF;
    PERFORM setval(bell, 0);
END
$$;

-- Mute the bell for so many milliseconds, after giving the sleeper's lock back if `rise`. True: somebody sleeps and was rung for
-- help; a worker that looks itself keeps its mute even so, a full one does not.
-- manner: 'looking' (let them sleep), 'saturated' (ring for help), 'full' (undo the mute and ring for help)
CREATE FUNCTION hybrid_runner.mute_bell(queue text, milliseconds integer, manner text, rise boolean) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    bell regclass;
    place integer;
BEGIN
    SELECT q.doorbell::regclass, q.number INTO STRICT bell, place FROM hybrid_runner.queues AS q WHERE q.name = mute_bell.queue;
    IF rise THEN
        PERFORM pg_advisory_unlock_shared(1212371538, place);
    END IF;
    PERFORM setval(bell, (extract(epoch FROM clock_timestamp()) * 1000)::bigint + milliseconds);
    -- Muted first, asked afterwards: whoever lies down in between opens the bell after us.
    IF manner = 'looking' OR pg_try_advisory_xact_lock(1212371538, place) THEN
        RETURN false;
    END IF;
    -- Another worker that asks at this moment holds it too: look closely.
    IF NOT EXISTS (
        SELECT FROM pg_locks AS l
        WHERE l.locktype = 'advisory' AND l.mode = 'ShareLock' AND l.granted
            AND l.classid = 1212371538 AND l.objid = place::oid AND l.objsubid = 2
            AND l.database = (SELECT d.oid FROM pg_database AS d WHERE d.datname = current_database())
    ) THEN
        RETURN false;
    END IF;
    IF manner = 'full' THEN
        PERFORM setval(bell, 0);
    END IF;
    PERFORM pg_notify('hybrid_runner.' || queue, 'help');
    RETURN true;
END
$$;

-- A worker ends: others forget it, and what its mute kept quiet is for them to find.
CREATE FUNCTION hybrid_runner.leave_bell(queue text, worker_id text, is_muted boolean) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    PERFORM pg_notify('hybrid_runner.' || queue, 'gone ' || worker_id);
    IF is_muted THEN
        PERFORM setval(q.doorbell::regclass, 0) FROM hybrid_runner.queues AS q WHERE q.name = leave_bell.queue;
        PERFORM pg_notify('hybrid_runner.' || queue, 'help');
    END IF;
END
$$;
