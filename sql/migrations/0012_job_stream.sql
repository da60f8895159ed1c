-- why: whoever reads how jobs move is told of changes; while nobody reads, nothing is published
-- locks: none that matters (creates and replaces functions only)

-- The lamp: "somebody reads until" as server-clock milliseconds. A sequence, so that it is read and written outside MVCC; a lease,
-- so that a page server that dies leaves it to go out by itself. Whoever lights it tells the workers on hybrid_runner.~lamp.
CREATE SEQUENCE hybrid_runner.lamp AS bigint MINVALUE 0 START 0;

-- How many milliseconds the lamp shines on; one that seems to for longer than a minute was lit by a clock that was set back since.
CREATE FUNCTION hybrid_runner.lamp_left() RETURNS integer
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
    SELECT CASE WHEN left_over.ms BETWEEN 1 AND 60000 THEN left_over.ms::integer ELSE 0 END
    FROM (
        SELECT pg_sequence_last_value('hybrid_runner.lamp') - (extract(epoch FROM clock_timestamp()) * 1000)::bigint
    ) AS left_over (ms)
$$;

-- Payloads on hybrid_runner.~changes, here and from workers: 'QUEUE KIND MORE ID ID …', MORE being how many ids had no room.
-- For changes that no worker makes and that come one by one; inserts are found by those who read, so that they need not say it.
CREATE FUNCTION hybrid_runner.publish(queue text, kind text, id bigint) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    IF hybrid_runner.lamp_left() > 0 THEN
        PERFORM pg_notify('hybrid_runner.~changes', format('%s %s 0 %s', queue, kind, id));
    END IF;
END
$$;

CREATE OR REPLACE FUNCTION hybrid_runner.enqueue_job(
    kind text, payload jsonb DEFAULT '{}', queue text DEFAULT 'default', key text DEFAULT NULL,
    priority integer DEFAULT 5, run_at timestamptz DEFAULT NULL, delay interval DEFAULT NULL,
    max_attempts integer DEFAULT NULL, timeout interval DEFAULT NULL, finish_by timestamptz DEFAULT NULL,
    data jsonb DEFAULT NULL, traceparent text DEFAULT NULL, on_conflict text DEFAULT 'exists'
) RETURNS TABLE (id bigint, outcome text)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_column
DECLARE
    due timestamptz := coalesce(enqueue_job.run_at, clock_timestamp() + coalesce(enqueue_job.delay, interval '0'));
    trace text := coalesce(enqueue_job.traceparent, nullif(current_setting('hybrid_runner.traceparent', true), ''));
    holder hybrid_runner.jobs;
BEGIN
    IF enqueue_job.on_conflict IS NULL OR enqueue_job.on_conflict NOT IN ('exists', 'replace', 'error') THEN
        RAISE EXCEPTION 'on_conflict must be exists, replace or error, not %', coalesce(enqueue_job.on_conflict, 'NULL')
            USING ERRCODE = 'invalid_parameter_value';
    END IF;
    IF enqueue_job.priority IS NULL OR enqueue_job.priority NOT BETWEEN 0 AND 9 THEN
        RAISE EXCEPTION 'priority must be 0 to 9, not %', coalesce(enqueue_job.priority::text, 'NULL')
            USING ERRCODE = 'check_violation', CONSTRAINT = 'jobs_priority_is_0_to_9';
    END IF;
    IF enqueue_job.max_attempts NOT BETWEEN 1 AND 1000 THEN
        RAISE EXCEPTION 'max_attempts must be 1 to 1000, not %', enqueue_job.max_attempts
            USING ERRCODE = 'check_violation', CONSTRAINT = 'jobs_max_attempts_is_1_to_1000';
    END IF;

    FOR tries IN 1..10 LOOP
        INSERT INTO hybrid_runner.jobs AS j
            (kind, payload, queue, key, priority, run_at, max_attempts, timeout, finish_by, data, traceparent)
        VALUES (enqueue_job.kind, coalesce(enqueue_job.payload, '{}'), enqueue_job.queue, enqueue_job.key, enqueue_job.priority, due,
            enqueue_job.max_attempts, enqueue_job.timeout, enqueue_job.finish_by, enqueue_job.data, trace)
        ON CONFLICT (key) WHERE key IS NOT NULL DO NOTHING
        RETURNING j.id, 'inserted' INTO enqueue_job.id, enqueue_job.outcome;
        IF FOUND THEN
            RETURN NEXT;
            RETURN;
        END IF;

        -- Locked only to replace it: a lock held until the caller commits hides a queued job from claims without a ring
        -- afterwards, and on a running one it holds up its settling and all that settle with it.
        IF enqueue_job.on_conflict = 'replace' THEN
            SELECT j.* INTO holder FROM hybrid_runner.jobs AS j
            WHERE j.key = enqueue_job.key AND j.state = 'queued' FOR UPDATE;
        END IF;
        IF holder.id IS NULL THEN
            SELECT j.* INTO holder FROM hybrid_runner.jobs AS j WHERE j.key = enqueue_job.key;
        END IF;
        -- The holder ended between the two statements: the key is free again.
        CONTINUE WHEN holder.id IS NULL;

        IF enqueue_job.on_conflict = 'error' THEN
            RAISE EXCEPTION 'key % is held by live job %', quote_literal(enqueue_job.key), holder.id
                USING ERRCODE = 'unique_violation', CONSTRAINT = 'jobs_one_live_job_per_key';
        END IF;
        enqueue_job.id := holder.id;
        enqueue_job.outcome := 'exists';
        IF enqueue_job.on_conflict = 'replace' AND holder.state = 'queued' THEN
            UPDATE hybrid_runner.jobs AS j SET
                kind = enqueue_job.kind, payload = coalesce(enqueue_job.payload, '{}'), queue = enqueue_job.queue,
                priority = enqueue_job.priority, run_at = due, max_attempts = enqueue_job.max_attempts,
                timeout = enqueue_job.timeout, finish_by = enqueue_job.finish_by, data = enqueue_job.data,
                traceparent = trace, attempt = 0, errors = NULL, version = j.version + 1
            WHERE j.id = holder.id AND j.state = 'queued';
            IF FOUND THEN -- else it was claimed meanwhile: it exists
                PERFORM hybrid_runner.ring(enqueue_job.queue, due);
                PERFORM hybrid_runner.publish(enqueue_job.queue, enqueue_job.kind, holder.id);
                enqueue_job.outcome := 'replaced';
            END IF;
        END IF;
        RETURN NEXT;
        RETURN;
    END LOOP;
    RAISE EXCEPTION 'key % changes hands too fast: try again', quote_literal(enqueue_job.key) USING ERRCODE = 'serialization_failure';
END
$$;

CREATE OR REPLACE FUNCTION hybrid_runner.cancel(id bigint, reason text DEFAULT NULL) RETURNS text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_column
DECLARE
    job hybrid_runner.jobs;
BEGIN
    -- Locked first: between a claim and this call there is one order.
    SELECT j.* INTO job FROM hybrid_runner.jobs AS j WHERE j.id = cancel.id FOR UPDATE;
    IF NOT FOUND THEN
        RETURN CASE WHEN EXISTS (SELECT FROM hybrid_runner.archive AS a WHERE a.id = cancel.id) THEN 'finished' ELSE 'unknown' END;
    END IF;
    -- A job whose worker is dead has nobody to tell: it ends here. Should that worker live after all, its claim is void.
    IF job.state = 'running' AND EXISTS (
        SELECT FROM hybrid_runner.workers AS w WHERE w.id = job.worker_id AND w.heartbeat_at + w.lease > clock_timestamp()
    ) THEN
        UPDATE hybrid_runner.jobs AS j SET
            cancel_requested_at = clock_timestamp(),
            errors = coalesce(j.errors, '[]') || jsonb_build_object(
                'at', clock_timestamp(), 'attempt', j.attempt, 'kind', 'Cancel',
                'message', coalesce(left(cancel.reason, 4096), 'cancelled while running')),
            version = j.version + 1
        WHERE j.id = cancel.id AND j.cancel_requested_at IS NULL;
        PERFORM pg_notify('hybrid_runner.' || job.queue, 'cancel ' || cancel.id);
        PERFORM hybrid_runner.publish(job.queue, job.kind, cancel.id);
        RETURN 'requested';
    END IF;
    WITH gone AS (DELETE FROM hybrid_runner.jobs AS j WHERE j.id = cancel.id RETURNING j.*)
    INSERT INTO hybrid_runner.archive
        (id, queue, kind, priority, payload, data, key, run_at, max_attempts, timeout, finish_by, traceparent, state, attempt,
        claim, worker_id, started_at, progress, errors, version, cancel_requested_at, created_at, finished_at)
    SELECT
        g.id, g.queue, g.kind, g.priority, g.payload, g.data, g.key, g.run_at, g.max_attempts, g.timeout, g.finish_by, g.traceparent,
        'cancelled', g.attempt, g.claim, g.worker_id, g.started_at, g.progress,
        coalesce(g.errors, '[]') || jsonb_build_object(
            'at', clock_timestamp(), 'attempt', g.attempt, 'kind', 'Cancel',
            'message', coalesce(left(cancel.reason, 4096), 'cancelled while ' || g.state)),
        g.version + 1, clock_timestamp(), g.created_at, clock_timestamp()
    FROM gone AS g;
    PERFORM hybrid_runner.publish(job.queue, job.kind, cancel.id);
    RETURN 'cancelled';
END
$$;

CREATE OR REPLACE FUNCTION hybrid_runner.retry(id bigint) RETURNS text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_column
DECLARE
    job hybrid_runner.jobs;
    done hybrid_runner.archive;
BEGIN
    SELECT j.* INTO job FROM hybrid_runner.jobs AS j WHERE j.id = retry.id FOR UPDATE;
    IF job.state = 'running' AND EXISTS (
        SELECT FROM hybrid_runner.workers AS w WHERE w.id = job.worker_id AND w.heartbeat_at + w.lease > clock_timestamp()
    ) THEN
        RETURN 'running';
    ELSIF job.state = 'running' THEN
        -- Its worker is dead. Should it live after all, its claim is void.
        UPDATE hybrid_runner.jobs AS j SET
            state = 'queued', run_at = clock_timestamp(), claim = NULL, worker_id = NULL, started_at = NULL,
            cancel_requested_at = NULL, version = j.version + 1
        WHERE j.id = retry.id;
        PERFORM hybrid_runner.ring(job.queue, clock_timestamp());
        PERFORM hybrid_runner.publish(job.queue, job.kind, retry.id);
        RETURN 'queued';
    ELSIF job.state = 'queued' THEN
        UPDATE hybrid_runner.jobs AS j SET run_at = least(j.run_at, clock_timestamp()), version = j.version + 1 WHERE j.id = retry.id;
        PERFORM hybrid_runner.ring(job.queue, clock_timestamp());
        PERFORM hybrid_runner.publish(job.queue, job.kind, retry.id);
        RETURN 'queued';
    END IF;

    -- Here, where it holds nothing of the archive yet, it can wait for a partition that is being written anew.
    PERFORM pg_advisory_xact_lock_shared(hashtextextended('hybrid_runner.prune', 0));
    SELECT a.* INTO done FROM hybrid_runner.archive AS a WHERE a.id = retry.id FOR UPDATE;
    IF NOT FOUND THEN
        -- Somebody else may have retried it while this call waited.
        RETURN CASE WHEN EXISTS (SELECT FROM hybrid_runner.jobs AS j WHERE j.id = retry.id) THEN 'queued' ELSE 'unknown' END;
    END IF;
    -- A fresh set of attempts; the errors of the earlier ones are kept.
    INSERT INTO hybrid_runner.jobs
        (id, queue, kind, priority, payload, data, key, max_attempts, timeout, traceparent, errors, version, created_at)
    VALUES (done.id, done.queue, done.kind, done.priority, done.payload, done.data, done.key, done.max_attempts, done.timeout,
        done.traceparent, done.errors, done.version + 1, done.created_at)
    ON CONFLICT DO NOTHING;
    IF NOT FOUND THEN
        RETURN 'key_taken';
    END IF;
    DELETE FROM hybrid_runner.archive AS a WHERE a.id = retry.id AND a.finished_at = done.finished_at;
    PERFORM hybrid_runner.publish(done.queue, done.kind, retry.id);
    RETURN 'queued';
END
$$;

CREATE OR REPLACE FUNCTION hybrid_runner.amend(
    id bigint, version integer, payload jsonb DEFAULT NULL, priority integer DEFAULT NULL, run_at timestamptz DEFAULT NULL,
    data jsonb DEFAULT NULL
) RETURNS text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_column
DECLARE
    job hybrid_runner.jobs;
BEGIN
    IF amend.priority NOT BETWEEN 0 AND 9 THEN
        RAISE EXCEPTION 'priority must be 0 to 9, not %', amend.priority
            USING ERRCODE = 'check_violation', CONSTRAINT = 'jobs_priority_is_0_to_9';
    END IF;
    SELECT j.* INTO job FROM hybrid_runner.jobs AS j WHERE j.id = amend.id FOR UPDATE;
    IF NOT FOUND THEN
        RETURN CASE WHEN EXISTS (SELECT FROM hybrid_runner.archive AS a WHERE a.id = amend.id) THEN 'finished' ELSE 'unknown' END;
    ELSIF job.version IS DISTINCT FROM amend.version THEN
        RETURN 'stale';
    ELSIF job.state = 'running' THEN
        RETURN 'running';
    END IF;
    UPDATE hybrid_runner.jobs AS j SET
        payload = coalesce(amend.payload, j.payload), priority = coalesce(amend.priority, j.priority),
        run_at = coalesce(amend.run_at, j.run_at), data = coalesce(amend.data, j.data), version = j.version + 1
    WHERE j.id = amend.id
    RETURNING j.run_at INTO job.run_at;
    PERFORM hybrid_runner.ring(job.queue, job.run_at);
    PERFORM hybrid_runner.publish(job.queue, job.kind, amend.id);
    RETURN 'amended';
END
$$;
