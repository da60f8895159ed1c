-- retry: a finished job runs again, a waiting one runs now; says queued, running, key_taken or
-- unknown.
CREATE OR REPLACE FUNCTION hybrid_runner.retry(id bigint) RETURNS text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
-- Plans that know when the job ended leave the archive's other partitions alone.
SET plan_cache_mode = 'force_custom_plan'
AS $$
#variable_conflict use_column
DECLARE
    job hybrid_runner.jobs;
    done hybrid_runner.archive;
BEGIN
    SELECT j.* INTO job FROM hybrid_runner.jobs AS j WHERE j.id = retry.id FOR UPDATE;
    IF job.state = 'running' AND EXISTS (
        SELECT FROM hybrid_runner.workers AS w
        WHERE w.id = job.worker_id AND w.dead_at IS NULL
            AND w.heartbeat_at + w.lease > clock_timestamp()
    ) THEN
        RETURN 'running';
    ELSIF job.state = 'running' THEN
        -- Its worker is dead. Should it live after all, its claim is void.
        UPDATE hybrid_runner.jobs AS j SET
            state = 'queued', run_at = clock_timestamp(), claim = NULL, worker_id = NULL,
            started_at = NULL, cancel_requested_at = NULL, version = j.version + 1
        WHERE j.id = retry.id;
        PERFORM hybrid_runner.ring(job.queue, clock_timestamp());
        PERFORM hybrid_runner.publish(job.queue, job.kind, retry.id);
        RETURN 'queued';
    ELSIF job.state = 'queued' THEN
        UPDATE hybrid_runner.jobs AS j
            SET run_at = least(j.run_at, clock_timestamp()), version = j.version + 1
            WHERE j.id = retry.id;
        PERFORM hybrid_runner.ring(job.queue, clock_timestamp());
        PERFORM hybrid_runner.publish(job.queue, job.kind, retry.id);
        RETURN 'queued';
    END IF;

    -- Here, where it holds nothing of the archive yet, it can wait for a partition that is being
    -- written anew.
    PERFORM FROM hybrid_runner.locks AS l WHERE l.name = 'prune' FOR SHARE;
    SELECT a.* INTO done FROM hybrid_runner.archived(ARRAY[retry.id]) AS a;
    SELECT a.* INTO done FROM hybrid_runner.archive AS a
    WHERE a.id = retry.id AND a.finished_at = done.finished_at FOR UPDATE;
    IF NOT FOUND THEN
        -- Somebody else may have retried it while this call waited.
        RETURN CASE WHEN EXISTS (SELECT FROM hybrid_runner.jobs AS j WHERE j.id = retry.id)
            THEN 'queued' ELSE 'unknown' END;
    END IF;
    -- A fresh set of attempts; the errors of the earlier ones are kept.
    INSERT INTO hybrid_runner.jobs
        (id, queue, kind, priority, payload, data, key, max_attempts, timeout, traceparent,
        enqueued_by, errors, version, created_at)
    VALUES (done.id, done.queue, done.kind, done.priority, done.payload, done.data, done.key,
        done.max_attempts, done.timeout, done.traceparent, done.enqueued_by, done.errors, done.version + 1,
        done.created_at)
    ON CONFLICT DO NOTHING;
    IF NOT FOUND THEN
        RETURN 'key_taken';
    END IF;
    DELETE FROM hybrid_runner.archive AS a
    WHERE a.id = retry.id AND a.finished_at = done.finished_at;
    PERFORM hybrid_runner.publish(done.queue, done.kind, retry.id);
    RETURN 'queued';
END
$$;
