-- join_key: for enqueue_job's follow and collect: put a new job, whose columns it is given, where it
-- is seen by a run that begins later; says inserted, replaced, collected or follows.
-- Who has a key has the key itself; who waits for that one's end has '>' before it, who waits for
-- the latter has '>>', and so on: the longest one is the last in line. The new job goes there.
-- One that is queued, or that has '>', has not begun: it is replaced, or given the items. A running
-- one is read and never locked, for that would hold up its settling; nothing here depends on
-- whether it still runs when the caller commits, since begin_successor() and end_jobs() see to that.
CREATE OR REPLACE FUNCTION hybrid_runner.join_key(
    new hybrid_runner.jobs, collects boolean, max_wait interval, max_items integer
) RETURNS TABLE (id bigint, outcome text)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_column
DECLARE
    last record;
    items jsonb := CASE WHEN jsonb_typeof(new.payload) = 'array' THEN new.payload
        ELSE jsonb_build_array(new.payload) END;
    size integer;
    may_change_all boolean := has_column_privilege(
        session_user, 'hybrid_runner.jobs', 'payload', 'UPDATE');
    its_queue text;
    due timestamptz;
BEGIN
    IF collects THEN
        new.payload := items;
        size := octet_length(items::text);
    END IF;
    FOR tries IN 1..20 LOOP
        SELECT l.* INTO last FROM hybrid_runner.last_in_line(new.key) AS l;
        IF last.id IS NOT NULL AND (last.state = 'queued' OR starts_with(last.key, '>')) AND (
            NOT collects
            -- What has begun keeps what it was given, and so does another kind's.
            OR last.began_at IS NULL AND (last.attempt = 0 OR starts_with(last.key, '>'))
            AND last.kind = new.kind AND EXISTS (
                SELECT FROM hybrid_runner.jobs AS j
                CROSS JOIN LATERAL (SELECT CASE WHEN jsonb_typeof(j.payload) = 'array'
                    THEN j.payload ELSE jsonb_build_array(j.payload) END) AS its (items)
                WHERE j.id = last.id
                    AND jsonb_array_length(its.items) + jsonb_array_length(items) <= max_items
                    -- Two lists in one have as many brackets and commas as the two.
                    AND octet_length(its.items::text) + size <= 1048576)
        ) THEN
            -- One's own alone, as enqueue_job() has it.
            IF last.enqueued_by <> session_user AND NOT may_change_all THEN
                RAISE EXCEPTION 'key % is held by job %, which % enqueued: to change jobs of other '
                    'logins takes the right UPDATE (payload) on hybrid_runner.jobs',
                    quote_literal(last.key), last.id, quote_ident(last.enqueued_by)
                    USING ERRCODE = 'insufficient_privilege';
            END IF;
            due := CASE WHEN max_wait IS NULL THEN new.run_at ELSE least(
                new.run_at, greatest(last.created_at + max_wait, clock_timestamp())) END;
            -- It is waited for, and counts if it still is what was read. A worker that is about to
            -- ask whether it may begin has an older claim then, and asks in vain.
            IF collects THEN
                UPDATE hybrid_runner.jobs AS j SET
                    payload = CASE WHEN jsonb_typeof(j.payload) = 'array' THEN j.payload
                        ELSE jsonb_build_array(j.payload) END || items,
                    priority = least(j.priority, new.priority), run_at = due, state = 'queued',
                    attempt = 0, claim = NULL, worker_id = NULL, started_at = NULL,
                    version = j.version + 1
                WHERE j.id = last.id AND j.version = last.version;
                outcome := 'collected';
            ELSE
                UPDATE hybrid_runner.jobs AS j SET
                    kind = new.kind, payload = new.payload, queue = new.queue,
                    priority = new.priority, run_at = due, max_attempts = new.max_attempts,
                    timeout = new.timeout, finish_by = new.finish_by, start_by = new.start_by,
                    data = new.data, traceparent = new.traceparent,
                    max_snoozes = new.max_snoozes, max_duration = new.max_duration,
                    finish_within = new.finish_within, state = 'queued', attempt = 0,
                    snoozes = 0, began_at = NULL, waits_for = NULL, errors = NULL,
                    history = NULL, progress = NULL, claim = NULL, worker_id = NULL,
                    started_at = NULL, version = j.version + 1
                WHERE j.id = last.id AND j.version = last.version;
                outcome := 'replaced';
            END IF;
            CONTINUE WHEN NOT FOUND;
            id := last.id;
            its_queue := CASE WHEN collects THEN last.queue ELSE new.queue END;
            PERFORM hybrid_runner.ring(its_queue, due);
            PERFORM hybrid_runner.publish(its_queue, new.kind, id);
            RETURN NEXT;
            RETURN;
        END IF;

        IF octet_length(last.key) > 511 THEN
            RAISE EXCEPTION 'too many jobs wait for key %', quote_literal(new.key)
                USING ERRCODE = 'program_limit_exceeded';
        END IF;
        INSERT INTO hybrid_runner.jobs AS j
            (kind, payload, queue, key, priority, run_at, max_attempts, timeout, finish_by,
            start_by, data, traceparent, max_snoozes, max_duration, finish_within)
        VALUES (new.kind, new.payload, new.queue, coalesce('>' || last.key, new.key),
            new.priority, new.run_at, new.max_attempts, new.timeout, new.finish_by, new.start_by,
            new.data, new.traceparent, new.max_snoozes, new.max_duration, new.finish_within)
        ON CONFLICT (key) WHERE key IS NOT NULL DO NOTHING
        RETURNING j.id INTO id;
        CONTINUE WHEN NOT FOUND;
        outcome := CASE WHEN last.id IS NULL THEN 'inserted' ELSE 'follows' END;
        RETURN NEXT;
        RETURN;
    END LOOP;
    RAISE EXCEPTION 'key % changes hands too fast: try again', quote_literal(new.key)
        USING ERRCODE = 'serialization_failure';
END
$$;
