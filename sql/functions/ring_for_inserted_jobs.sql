-- ring_for_inserted_jobs: the trigger on jobs: ring for what was inserted.
-- Most inserts are for one queue, and its bell is mute while many come: that is decided by two
-- short queries, and so is one ring for what is due. All else is rare, and left to ring().
CREATE OR REPLACE FUNCTION hybrid_runner.ring_for_inserted_jobs() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    its_queue text;
    last_queue text;
    last_due timestamptz;
    is_mute boolean;
    is_quiet boolean;
BEGIN
    SELECT min(i.queue COLLATE "C"), max(i.queue COLLATE "C"), max(i.run_at)
    INTO its_queue, last_queue, last_due
    FROM inserted AS i;
    IF its_queue IS NULL THEN
        RETURN NULL; -- nothing was inserted
    END IF;
    IF its_queue = last_queue THEN
        SELECT
            -- muted for 1 to 60000 ms more; BETWEEN would ask twice for the value and for the time
            abs(
                CASE WHEN pg_relation_filenode(q.doorbell) IS NOT NULL
                    THEN pg_sequence_last_value(q.doorbell) END
                - (extract(epoch FROM clock_timestamp()) * 1000)::bigint - 30000
            ) < 30000
        INTO is_mute
        FROM hybrid_runner.queues AS q WHERE q.name = its_queue;
        IF is_mute THEN
            RETURN NULL;
        END IF;
    END IF;
    is_quiet := coalesce(nullif(current_setting('hybrid_runner.quiet', true), ''), 'off')::boolean;
    IF is_quiet THEN
        -- What is due a moment after it was made needs no ring, so that none is missed.
        UPDATE hybrid_runner.jobs AS j
        SET run_at = greatest(j.run_at, j.created_at) + interval '101 milliseconds'
        FROM inserted AS i
        WHERE j.id = i.id AND j.run_at <= j.created_at + interval '100 milliseconds';
    ELSIF its_queue = last_queue AND last_due <= clock_timestamp()
        AND pg_notification_queue_usage() < double precision '0.5' THEN
        -- As ring() does it, without the call.
        PERFORM pg_notify('hybrid_runner.' || its_queue, '');
    ELSE
        PERFORM hybrid_runner.ring(i.queue, min(i.run_at)) FROM inserted AS i
        GROUP BY i.queue, i.run_at > clock_timestamp();
    END IF;
    RETURN NULL;
END
$$;
