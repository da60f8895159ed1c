-- enqueue_job: store one job and say what became of its key: inserted, exists, replaced, follows or
-- collected.
-- Without a queue it waits in that of the kind's handler. A kind that no worker has declared is
-- stored all the same: its first worker may be about to start.
CREATE OR REPLACE FUNCTION hybrid_runner.enqueue_job(
    kind text, payload jsonb DEFAULT '{}', queue text DEFAULT NULL, key text DEFAULT NULL,
    priority integer DEFAULT 5, run_at timestamptz DEFAULT NULL, delay interval DEFAULT NULL,
    max_attempts integer DEFAULT NULL, timeout interval DEFAULT NULL,
    finish_by timestamptz DEFAULT NULL, data jsonb DEFAULT NULL, traceparent text DEFAULT NULL,
    on_conflict text DEFAULT 'exists', max_snoozes integer DEFAULT NULL,
    max_duration interval DEFAULT NULL, finish_within interval DEFAULT NULL,
    start_by timestamptz DEFAULT NULL, max_wait interval DEFAULT NULL,
    unique_for interval DEFAULT NULL, max_items integer DEFAULT NULL
) RETURNS TABLE (id bigint, outcome text)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
-- A key is waited for while somebody's open transaction holds it, and no longer than this.
-- To plan costs more than to run it: its statements are so written that one index fits each, for
-- any table. (Not running is queued, and in that form no index of the queued ones fits.)
SET lock_timeout = '5s' SET plan_cache_mode = 'force_generic_plan' SET enable_seqscan = off
AS $$
#variable_conflict use_column
DECLARE
    -- Made of seconds: a day of an interval is longer or shorter when the session's time zone
    -- changes its clocks.
    due timestamptz := coalesce(enqueue_job.run_at, clock_timestamp() + coalesce(
        make_interval(secs => extract(epoch FROM enqueue_job.delay)::float8), interval '0'));
    trace text := coalesce(enqueue_job.traceparent,
        nullif(current_setting('hybrid_runner.traceparent', true), ''));
    holder hybrid_runner.jobs;
    may_replace boolean := false;
    its_queue text;
    new hybrid_runner.jobs;
BEGIN
    IF enqueue_job.on_conflict IS DISTINCT FROM 'exists' OR starts_with(enqueue_job.key, '>')
        OR num_nonnulls(enqueue_job.start_by, enqueue_job.max_wait, enqueue_job.unique_for,
            enqueue_job.max_items) > 0 THEN
        PERFORM hybrid_runner.check_key_use(
            enqueue_job.key, enqueue_job.on_conflict, enqueue_job.run_at, enqueue_job.delay,
            enqueue_job.start_by, enqueue_job.max_wait, enqueue_job.unique_for,
            enqueue_job.max_items);
        due := least(due, clock_timestamp() + enqueue_job.max_wait);
    END IF;
    IF enqueue_job.run_at IS NOT NULL AND enqueue_job.delay IS NOT NULL THEN
        RAISE EXCEPTION 'give run_at or delay, not both' USING ERRCODE = 'invalid_parameter_value';
    END IF;
    IF enqueue_job.priority IS NULL OR enqueue_job.priority NOT BETWEEN 0 AND 9 THEN
        RAISE EXCEPTION 'priority must be 0 to 9, not %',
            coalesce(enqueue_job.priority::text, 'NULL')
            USING ERRCODE = 'check_violation', CONSTRAINT = 'jobs_priority_is_0_to_9';
    END IF;
    IF enqueue_job.max_attempts NOT BETWEEN 1 AND 1000 THEN
        RAISE EXCEPTION 'max_attempts must be 1 to 1000, not %', enqueue_job.max_attempts
            USING ERRCODE = 'check_violation', CONSTRAINT = 'jobs_max_attempts_is_1_to_1000';
    END IF;
    IF enqueue_job.max_snoozes < 0 THEN
        RAISE EXCEPTION 'max_snoozes must be 0 to 2147483647, not %', enqueue_job.max_snoozes
            USING ERRCODE = 'invalid_parameter_value';
    END IF;
    IF enqueue_job.max_duration <= interval '0' OR enqueue_job.max_duration > interval '3650 days' THEN
        RAISE EXCEPTION 'max_duration must be more than zero and at most ten years'
            USING ERRCODE = 'invalid_parameter_value';
    END IF;
    IF enqueue_job.finish_within <= interval '0' OR enqueue_job.finish_within > interval '3650 days' THEN
        RAISE EXCEPTION 'finish_within must be more than zero and at most ten years'
            USING ERRCODE = 'invalid_parameter_value';
    END IF;
    SELECT k.queue INTO its_queue FROM hybrid_runner.kinds AS k WHERE k.name = enqueue_job.kind;
    IF NOT FOUND THEN
        its_queue := hybrid_runner.queue_of(enqueue_job.kind); -- which warns of what looks like a typo
    END IF;
    its_queue := coalesce(enqueue_job.queue, its_queue);

    IF enqueue_job.on_conflict IN ('follow', 'collect') THEN
        new.kind := enqueue_job.kind;
        new.queue := its_queue;
        new.key := enqueue_job.key;
        new.priority := enqueue_job.priority;
        new.run_at := due;
        new.max_attempts := enqueue_job.max_attempts;
        new.timeout := enqueue_job.timeout;
        new.finish_by := enqueue_job.finish_by;
        new.start_by := enqueue_job.start_by;
        new.traceparent := trace;
        new.max_snoozes := enqueue_job.max_snoozes;
        new.max_duration := enqueue_job.max_duration;
        new.finish_within := enqueue_job.finish_within;
        IF enqueue_job.on_conflict = 'collect' AND enqueue_job.payload = '[]' THEN
            RAISE EXCEPTION 'collect needs at least one item'
                USING ERRCODE = 'invalid_parameter_value';
        END IF;
        RETURN QUERY SELECT j.id, j.outcome FROM hybrid_runner.join_key(
            to_jsonb(new), coalesce(enqueue_job.payload, '{}'), enqueue_job.data,
            enqueue_job.on_conflict = 'collect', enqueue_job.max_wait,
            coalesce(enqueue_job.max_items, 1000)) AS j;
        RETURN;
    END IF;
    IF enqueue_job.unique_for IS NOT NULL THEN
        enqueue_job.id := hybrid_runner.take_key(enqueue_job.key, enqueue_job.unique_for);
        IF enqueue_job.id IS NOT NULL THEN
            IF enqueue_job.on_conflict = 'error' THEN
                RAISE EXCEPTION 'key % was taken by job %, and is not free yet',
                    quote_literal(enqueue_job.key), enqueue_job.id
                    USING ERRCODE = 'unique_violation', CONSTRAINT = 'jobs_one_live_job_per_key';
            END IF;
            enqueue_job.outcome := 'exists';
            RETURN NEXT;
            RETURN;
        END IF;
    END IF;

    FOR tries IN 1..10 LOOP
        INSERT INTO hybrid_runner.jobs AS j
            (kind, payload, queue, key, priority, run_at, max_attempts, timeout, finish_by,
            data, traceparent, max_snoozes, max_duration, finish_within, start_by)
        VALUES (enqueue_job.kind, coalesce(enqueue_job.payload, '{}'), its_queue,
            enqueue_job.key, enqueue_job.priority, due, enqueue_job.max_attempts,
            enqueue_job.timeout, enqueue_job.finish_by, enqueue_job.data, trace,
            enqueue_job.max_snoozes, enqueue_job.max_duration, enqueue_job.finish_within,
            enqueue_job.start_by)
        ON CONFLICT (key) WHERE key IS NOT NULL DO NOTHING
        RETURNING j.id, 'inserted' INTO enqueue_job.id, enqueue_job.outcome;
        IF FOUND THEN
            IF enqueue_job.unique_for IS NOT NULL THEN
                UPDATE hybrid_runner.taken_keys AS t SET job_id = enqueue_job.id
                WHERE t.key = enqueue_job.key;
            END IF;
            RETURN NEXT;
            RETURN;
        END IF;

        -- Locked only to replace it: a lock held until the caller commits hides a queued job from
        -- claims without a ring afterwards, and on a running one it holds up its settling and all
        -- that settle with it.
        -- One's own alone: else any producer could hide the jobs of others from workers.
        -- Whoever may write payloads as it is may write them this way too.
        IF enqueue_job.on_conflict = 'replace' THEN
            SELECT j.* INTO holder FROM hybrid_runner.jobs AS j
            WHERE j.key = enqueue_job.key AND j.state <> 'running'
                AND (j.enqueued_by = session_user OR has_column_privilege(
                    session_user, 'hybrid_runner.jobs', 'payload', 'UPDATE'))
            FOR UPDATE;
            may_replace := FOUND;
        END IF;
        IF holder.id IS NULL THEN
            SELECT j.* INTO holder FROM hybrid_runner.jobs AS j WHERE j.key = enqueue_job.key;
        END IF;
        -- The holder ended between the two statements: the key is free again.
        CONTINUE WHEN holder.id IS NULL;
        IF enqueue_job.unique_for IS NOT NULL THEN
            -- A live job has it that did not take it for longer: nor does this call.
            DELETE FROM hybrid_runner.taken_keys AS t WHERE t.key = enqueue_job.key;
        END IF;

        IF enqueue_job.on_conflict = 'error' THEN
            RAISE EXCEPTION 'key % is held by live job %', quote_literal(enqueue_job.key), holder.id
                USING ERRCODE = 'unique_violation', CONSTRAINT = 'jobs_one_live_job_per_key';
        END IF;
        IF enqueue_job.on_conflict = 'replace' AND holder.state = 'queued'
            AND holder.enqueued_by <> session_user AND NOT has_column_privilege(
                session_user, 'hybrid_runner.jobs', 'payload', 'UPDATE') THEN
            RAISE EXCEPTION 'key % is held by job %, which % enqueued: to replace jobs of other '
                'logins takes the right UPDATE (payload) on hybrid_runner.jobs',
                quote_literal(enqueue_job.key), holder.id, quote_ident(holder.enqueued_by)
                USING ERRCODE = 'insufficient_privilege';
        END IF;
        enqueue_job.id := holder.id;
        enqueue_job.outcome := 'exists';
        IF may_replace THEN
            UPDATE hybrid_runner.jobs AS j SET
                kind = enqueue_job.kind, payload = coalesce(enqueue_job.payload, '{}'),
                queue = its_queue, priority = enqueue_job.priority,
                run_at = CASE WHEN enqueue_job.max_wait IS NULL THEN due ELSE least(due, greatest(
                    j.created_at + enqueue_job.max_wait, clock_timestamp())) END,
                max_attempts = enqueue_job.max_attempts, timeout = enqueue_job.timeout,
                finish_by = enqueue_job.finish_by, data = enqueue_job.data, traceparent = trace,
                max_snoozes = enqueue_job.max_snoozes, max_duration = enqueue_job.max_duration,
                finish_within = enqueue_job.finish_within, start_by = enqueue_job.start_by,
                attempt = 0, snoozes = 0, began_at = NULL, waits_for = NULL, errors = NULL,
                history = NULL, version = j.version + 1
            WHERE j.id = holder.id AND j.state <> 'running'
            RETURNING j.run_at INTO due;
            IF FOUND THEN -- else it was claimed meanwhile: it exists
                PERFORM hybrid_runner.ring(its_queue, due);
                PERFORM hybrid_runner.publish(its_queue, enqueue_job.kind, holder.id);
                enqueue_job.outcome := 'replaced';
            END IF;
        END IF;
        RETURN NEXT;
        RETURN;
    END LOOP;
    RAISE EXCEPTION 'key % changes hands too fast: try again', quote_literal(enqueue_job.key)
        USING ERRCODE = 'serialization_failure';
END
$$;
