-- why: while a worker looks by itself, inserts need not ring; whoever sleeps is known by a lock that ends with its session
-- locks: ACCESS EXCLUSIVE on queues for a moment; it has a row per queue

-- The doorbell as a reference: looking its name up would cost every insert a quarter of what the trigger costs.
ALTER TABLE hybrid_runner.queues ADD COLUMN bell regclass;
UPDATE hybrid_runner.queues SET bell = doorbell::regclass;

CREATE OR REPLACE FUNCTION hybrid_runner.open_queue(name text, ring_within interval DEFAULT '60 seconds') RETURNS text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_column
DECLARE
    doorbell text;
BEGIN
    INSERT INTO hybrid_runner.queues (name, ring_within) VALUES (open_queue.name, open_queue.ring_within)
    ON CONFLICT (name) DO NOTHING
    RETURNING queues.doorbell INTO doorbell;
    IF FOUND THEN
        EXECUTE format('CREATE SEQUENCE %s AS bigint MINVALUE 0 START 0', doorbell);
        UPDATE hybrid_runner.queues SET bell = doorbell::regclass WHERE name = open_queue.name;
    ELSE
        UPDATE hybrid_runner.queues SET ring_within = open_queue.ring_within
        WHERE name = open_queue.name AND ring_within < open_queue.ring_within;
        SELECT queues.doorbell INTO doorbell FROM hybrid_runner.queues WHERE name = open_queue.name;
    END IF;
    RETURN doorbell;
END
$$;

CREATE OR REPLACE FUNCTION hybrid_runner.ring(queue text, due timestamptz) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    server_time timestamptz := clock_timestamp();
    muted_until bigint;
    within interval;
BEGIN
    -- No row, no sequence, no value, any doubt: ring. (The file of a relation that is gone is NULL; its value would be an error.)
    SELECT CASE WHEN pg_relation_filenode(q.bell) IS NOT NULL THEN pg_sequence_last_value(q.bell) END, q.ring_within
    INTO muted_until, within
    FROM hybrid_runner.queues AS q WHERE q.name = ring.queue;
    -- No mute is longer than a minute: one that seems to be was written by a clock that was set back since.
    IF muted_until - extract(epoch FROM server_time) * 1000 BETWEEN 1 AND 60000 THEN
        RETURN;
    END IF;
    IF due <= server_time THEN
        PERFORM pg_notify('hybrid_runner.' || queue, '');
    ELSIF due <= server_time + coalesce(within, interval '60 seconds') THEN
        PERFORM pg_notify('hybrid_runner.' || queue, 'later');
    END IF;
END
$$;

-- Most inserts are for one queue, and its bell is mute while many come: that is decided by one short query.
CREATE OR REPLACE FUNCTION hybrid_runner.ring_for_inserted_jobs() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    PERFORM
    FROM (SELECT DISTINCT i.queue FROM inserted AS i) AS n
    LEFT JOIN hybrid_runner.queues AS q ON q.name = n.queue
    WHERE (
        -- muted for 1 to 60000 ms more; BETWEEN would ask twice for the value and for the time
        abs(
            CASE WHEN pg_relation_filenode(q.bell) IS NOT NULL THEN pg_sequence_last_value(q.bell) END
            - (extract(epoch FROM clock_timestamp()) * 1000)::bigint - 30000
        ) < 30000
    ) IS NOT TRUE
    LIMIT 1;
    IF FOUND THEN
        PERFORM hybrid_runner.ring(i.queue, min(i.run_at)) FROM inserted AS i GROUP BY i.queue, i.run_at > clock_timestamp();
    END IF;
    RETURN NULL;
END
$$;

-- The lock of those who sleep is advisory and shared: 1212371538, which means nothing else, and the queue's number.

-- Take the sleeper's lock if `lie_down`, then open the bell: in this order, so that a full worker sees the one or the other.
CREATE FUNCTION hybrid_runner.open_bell(queue text, lie_down boolean) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    its_bell regclass;
    place integer;
BEGIN
    SELECT q.bell, q.number INTO its_bell, place FROM hybrid_runner.queues AS q WHERE q.name = open_bell.queue;
    IF NOT FOUND THEN -- somebody has deleted it
        PERFORM hybrid_runner.open_queue(open_bell.queue);
        SELECT q.bell, q.number INTO STRICT its_bell, place FROM hybrid_runner.queues AS q WHERE q.name = open_bell.queue;
    END IF;
    IF lie_down THEN
        PERFORM pg_advisory_lock_shared(1212371538, place);
    END IF;
    PERFORM setval(its_bell, 0);
END
$$;

-- Mute the bell for so many milliseconds, after giving the sleeper's lock back if `rise`. True: somebody sleeps and was rung for
-- help; a worker that looks itself keeps its mute even so, a full one does not.
-- manner: 'looking' (let them sleep), 'saturated' (ring for help), 'full' (undo the mute and ring for help)
CREATE FUNCTION hybrid_runner.mute_bell(queue text, milliseconds integer, manner text, rise boolean) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    its_bell regclass;
    place integer;
BEGIN
    SELECT q.bell, q.number INTO its_bell, place FROM hybrid_runner.queues AS q WHERE q.name = mute_bell.queue;
    IF NOT FOUND THEN -- somebody has deleted it
        PERFORM hybrid_runner.open_queue(mute_bell.queue);
        SELECT q.bell, q.number INTO STRICT its_bell, place FROM hybrid_runner.queues AS q WHERE q.name = mute_bell.queue;
    END IF;
    IF rise THEN
        PERFORM pg_advisory_unlock_shared(1212371538, place);
    END IF;
    PERFORM setval(its_bell, (extract(epoch FROM clock_timestamp()) * 1000)::bigint + milliseconds);
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
        PERFORM setval(its_bell, 0);
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
        PERFORM setval(q.bell, 0) FROM hybrid_runner.queues AS q WHERE q.name = leave_bell.queue;
        PERFORM pg_notify('hybrid_runner.' || queue, 'help');
    END IF;
END
$$;
