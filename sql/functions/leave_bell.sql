-- leave_bell: a worker ends: the others no longer count on it, and look for what its mute kept from
-- ringing.
CREATE OR REPLACE FUNCTION hybrid_runner.leave_bell(
    queue text, worker_id text, is_muted boolean
) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    PERFORM hybrid_runner.notify_if_room('hybrid_runner.' || queue, 'gone ' || worker_id);
    IF is_muted THEN
        PERFORM setval(q.doorbell, 0) FROM hybrid_runner.queues AS q
        WHERE q.name = leave_bell.queue;
        PERFORM hybrid_runner.notify_if_room('hybrid_runner.' || queue, 'help');
    END IF;
END
$$;
