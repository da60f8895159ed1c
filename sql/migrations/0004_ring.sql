-- why: an insert wakes a listening worker, unless the queue's doorbell says that one is looking anyway
-- locks: SHARE ROW EXCLUSIVE on jobs for a moment (CREATE TRIGGER)

-- Payloads on a queue's channel: '' (look now), 'later' (a job is due soon: set the timer), 'help' (all wake), 'cancel ID'.
CREATE FUNCTION hybrid_runner.ring(queue text, due timestamptz) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    server_time timestamptz := clock_timestamp();
    muted_until bigint;
    within interval;
BEGIN
    SELECT pg_sequence_last_value(to_regclass(q.doorbell)), q.ring_within INTO muted_until, within
    FROM hybrid_runner.queues AS q WHERE q.name = ring.queue;
    -- No row, no value, any doubt: ring.
    IF muted_until > extract(epoch FROM server_time) * 1000 THEN
        RETURN;
    END IF;
    IF due <= server_time THEN
        PERFORM pg_notify('hybrid_runner.' || queue, '');
    ELSIF due <= server_time + coalesce(within, interval '60 seconds') THEN
        PERFORM pg_notify('hybrid_runner.' || queue, 'later');
    END IF;
END
$$;

CREATE FUNCTION hybrid_runner.ring_for_inserted_jobs() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    PERFORM hybrid_runner.ring(i.queue, min(i.run_at)) FROM inserted AS i GROUP BY i.queue, i.run_at > clock_timestamp();
    RETURN NULL;
END
$$;

CREATE TRIGGER ring_for_inserted_jobs AFTER INSERT ON hybrid_runner.jobs
REFERENCING NEW TABLE AS inserted FOR EACH STATEMENT EXECUTE FUNCTION hybrid_runner.ring_for_inserted_jobs();
