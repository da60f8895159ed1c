-- open_bell: open the bell: from now on every insert into the queue rings.
CREATE OR REPLACE FUNCTION hybrid_runner.open_bell(queue text) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    PERFORM setval(q.doorbell, 0) FROM hybrid_runner.queues AS q WHERE q.name = open_bell.queue;
    IF NOT FOUND THEN -- somebody has deleted it
        PERFORM setval(hybrid_runner.open_queue(open_bell.queue)::regclass, 0);
    END IF;
END
$$;
