-- why: what people do to jobs and queues, callable from any language; each says in one word what happened
-- locks: none that matters (creates new objects only)

CREATE FUNCTION hybrid_runner.cancel(id bigint, reason text DEFAULT NULL) RETURNS text
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
    RETURN 'cancelled';
END
$$;

CREATE FUNCTION hybrid_runner.retry(id bigint) RETURNS text
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
        RETURN 'queued';
    ELSIF job.state = 'queued' THEN
        UPDATE hybrid_runner.jobs AS j SET run_at = least(j.run_at, clock_timestamp()), version = j.version + 1 WHERE j.id = retry.id;
        PERFORM hybrid_runner.ring(job.queue, clock_timestamp());
        RETURN 'queued';
    END IF;

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
    RETURN 'queued';
END
$$;

CREATE FUNCTION hybrid_runner.amend(
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
    RETURN 'amended';
END
$$;

CREATE FUNCTION hybrid_runner.pause(queue text) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    PERFORM hybrid_runner.open_queue(queue);
    UPDATE hybrid_runner.queues AS q SET paused_at = clock_timestamp() WHERE q.name = queue AND q.paused_at IS NULL;
    RETURN FOUND;
END
$$;

CREATE FUNCTION hybrid_runner.resume(queue text) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    UPDATE hybrid_runner.queues AS q SET paused_at = NULL WHERE q.name = queue AND q.paused_at IS NOT NULL;
    IF FOUND THEN
        PERFORM pg_notify('hybrid_runner.' || queue, 'help');
    END IF;
    RETURN FOUND;
END
$$;
