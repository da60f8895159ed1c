-- ring: wake a worker of this queue for a job that is due then, unless the queue's doorbell says
-- that one is looking anyway. With `commits` the transaction ends with this statement, so the ring
-- may say in how many milliseconds the job is due, which nobody has to ask for then.
CREATE OR REPLACE FUNCTION hybrid_runner.ring(
    queue text, due timestamptz, commits boolean DEFAULT false
) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    server_time timestamptz := clock_timestamp();
    muted_until bigint;
    within interval;
BEGIN
    -- No row, no sequence, no value, any doubt: ring. (The file of a relation that is gone is NULL;
    -- its value would be an error.)
    SELECT CASE WHEN pg_relation_filenode(q.doorbell) IS NOT NULL
        THEN pg_sequence_last_value(q.doorbell) END, q.ring_within
    INTO muted_until, within
    FROM hybrid_runner.queues AS q WHERE q.name = ring.queue;
    -- No mute is longer than a minute: one that seems to be was written by a clock that was set
    -- back since.
    IF muted_until - extract(epoch FROM server_time) * 1000 BETWEEN 1 AND 60000 THEN
        RETURN;
    END IF;
    -- As notify_if_room has it, without the call: this is on the way of every insert that rings.
    IF due > server_time + coalesce(within, interval '60 seconds')
        OR pg_notification_queue_usage() >= double precision '0.5'
        OR coalesce(nullif(current_setting('hybrid_runner.quiet', true), ''), 'off')::boolean THEN
        RETURN;
    END IF;
    IF due <= server_time THEN
        PERFORM pg_notify('hybrid_runner.' || queue, '');
    ELSIF commits THEN
        PERFORM pg_notify('hybrid_runner.' || queue,
            'later ' || ceil(extract(epoch FROM due - server_time) * 1000)::bigint);
    ELSE
        PERFORM pg_notify('hybrid_runner.' || queue, 'later');
    END IF;
END
$$;
