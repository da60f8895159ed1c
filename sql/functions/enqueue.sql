-- enqueue: store one job and return its id; enqueue_job() also says what became of its key.
CREATE OR REPLACE FUNCTION hybrid_runner.enqueue(
    kind text, payload jsonb DEFAULT '{}', queue text DEFAULT NULL, key text DEFAULT NULL,
    priority integer DEFAULT 5, run_at timestamptz DEFAULT NULL, delay interval DEFAULT NULL,
    max_attempts integer DEFAULT NULL, timeout interval DEFAULT NULL,
    finish_by timestamptz DEFAULT NULL, data jsonb DEFAULT NULL, traceparent text DEFAULT NULL,
    on_conflict text DEFAULT 'exists', max_snoozes integer DEFAULT NULL,
    max_duration interval DEFAULT NULL, finish_within interval DEFAULT NULL,
    start_by timestamptz DEFAULT NULL, max_wait interval DEFAULT NULL,
    unique_for interval DEFAULT NULL, max_items integer DEFAULT NULL
) RETURNS bigint
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    done record;
BEGIN
    SELECT e.id, e.outcome INTO done FROM hybrid_runner.enqueue_job(
        kind, payload, queue, key, priority, run_at, delay, max_attempts, timeout, finish_by, data,
        traceparent, on_conflict, max_snoozes, max_duration, finish_within, start_by, max_wait,
        unique_for, max_items) AS e;
    IF done.outcome = 'exists' THEN
        RAISE NOTICE
            'key % is held by live job %: nothing was stored (enqueue_job() returns this as a column)',
            quote_literal(key), done.id;
    END IF;
    RETURN done.id;
END
$$;
