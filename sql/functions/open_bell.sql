-- open_bell: take the sleep lock if told to, then open the bell: in this order, so that a full
-- worker sees the one or the other.
-- The sleep lock says that somebody sleeps on this queue. It is advisory and shared: 1212371538,
-- which means nothing else, and the queue's number; it ends with its session.
CREATE OR REPLACE FUNCTION hybrid_runner.open_bell(queue text, take_sleep_lock boolean) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    its_bell regclass;
    place integer;
BEGIN
    SELECT q.doorbell, q.number INTO its_bell, place FROM hybrid_runner.queues AS q
    WHERE q.name = open_bell.queue;
    IF NOT FOUND THEN -- somebody has deleted it
        PERFORM hybrid_runner.open_queue(open_bell.queue);
        SELECT q.doorbell, q.number INTO STRICT its_bell, place FROM hybrid_runner.queues AS q
        WHERE q.name = open_bell.queue;
    END IF;
    IF take_sleep_lock THEN
        PERFORM pg_advisory_lock_shared(1212371538, place);
    END IF;
    PERFORM setval(its_bell, 0);
END
$$;
