-- join_key: for enqueue_job's follow and collect: put a new job, whose columns it is given, where a
-- run that begins later sees it; says inserted, replaced, collected or follows.
-- Who has a key has the key itself; who waits for that one's end has '>' before it, who waits for
-- the latter has '>>', and so on: the longest one is the last in line. The new job goes there.
-- One that is queued, or that has '>', does not run: it is replaced, or given the items. A running
-- one is read and never locked, for that would hold up its settling; nothing here depends on
-- whether it still runs when the caller commits: begin_successor() and end_jobs() see to that.
CREATE OR REPLACE FUNCTION hybrid_runner.join_key(
    columns jsonb, payload jsonb, data jsonb, collects boolean, max_wait interval, max_items integer
) RETURNS TABLE (id bigint, outcome text)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_column
DECLARE
    new hybrid_runner.jobs := jsonb_populate_record(NULL::hybrid_runner.jobs, columns);
    more jsonb := CASE WHEN collects THEN hybrid_runner.items_of(join_key.payload)
        ELSE join_key.payload END;
    last hybrid_runner.jobs;
    its_queue text;
    due timestamptz;
BEGIN
    FOR tries IN 1..20 LOOP
        SELECT j.* INTO last FROM hybrid_runner.jobs AS j
        WHERE j.id = (SELECT hybrid_runner.last_in_line(new.key));
        IF NOT collects AND (last.state = 'queued' OR starts_with(last.key, '>'))
            OR collects AND hybrid_runner.has_room(last.id, new.kind, more, max_items) THEN
            -- One's own alone, as enqueue_job() has it.
            IF last.enqueued_by <> session_user AND NOT has_column_privilege(
                session_user, 'hybrid_runner.jobs', 'payload', 'UPDATE') THEN
                RAISE EXCEPTION 'key % is held by job %, which % enqueued: to change jobs of other '
                    'logins takes the right UPDATE (payload) on hybrid_runner.jobs',
                    quote_literal(last.key), last.id, quote_ident(last.enqueued_by)
                    USING ERRCODE = 'insufficient_privilege';
            END IF;
            -- As it is by now: it may have begun, or be full, or have the key that it waited for.
            SELECT j.* INTO last
            FROM hybrid_runner.jobs AS j
            WHERE j.id = last.id AND j.key = last.key
                AND (j.state = 'queued' OR starts_with(j.key, '>'))
            FOR UPDATE;
            CONTINUE WHEN NOT FOUND
                OR collects AND NOT hybrid_runner.has_room(last.id, new.kind, more, max_items);
            due := CASE WHEN max_wait IS NULL THEN new.run_at ELSE least(
                new.run_at, greatest(last.created_at + max_wait, clock_timestamp())) END;
            its_queue := CASE WHEN collects THEN last.queue ELSE new.queue END;
            -- A worker that is about to ask whether it may begin has an older claim then, and asks
            -- in vain.
            IF collects THEN
                UPDATE hybrid_runner.jobs AS j SET
                    payload = hybrid_runner.items_of(j.payload) || more,
                    priority = least(j.priority, new.priority), run_at = due, state = 'queued',
                    attempt = 0, claim = NULL, worker_id = NULL, started_at = NULL,
                    version = j.version + 1
                WHERE j.id = last.id;
            ELSE
                UPDATE hybrid_runner.jobs AS j SET
                    kind = new.kind, payload = more, queue = new.queue,
                    priority = new.priority, run_at = due, max_attempts = new.max_attempts,
                    timeout = new.timeout, finish_by = new.finish_by, start_by = new.start_by,
                    data = join_key.data, traceparent = new.traceparent,
                    max_snoozes = new.max_snoozes, max_duration = new.max_duration,
                    finish_within = new.finish_within, state = 'queued', attempt = 0,
                    snoozes = 0, began_at = NULL, waits_for = NULL, errors = NULL,
                    history = NULL, claim = NULL, worker_id = NULL, started_at = NULL,
                    version = j.version + 1
                WHERE j.id = last.id;
            END IF;
            PERFORM hybrid_runner.ring(its_queue, due);
            PERFORM hybrid_runner.publish(its_queue, new.kind, last.id);
            id := last.id;
            outcome := CASE WHEN collects THEN 'collected' ELSE 'replaced' END;
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
        VALUES (new.kind, more, new.queue, coalesce('>' || last.key, new.key), new.priority, new.run_at,
            new.max_attempts, new.timeout, new.finish_by, new.start_by, join_key.data,
            new.traceparent, new.max_snoozes, new.max_duration, new.finish_within)
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
