-- retry: a finished job runs again, a waiting one runs now; says queued, running, key_taken or
-- unknown. A superuser is refused where that would write a row of another role's table.
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
    IF job.state = 'running' AND job.source IS NOT NULL AND hybrid_runner.outranks_owner(job.source) THEN
        RAISE 'a superuser runs no code of the table''s owner: use a worker login that is no superuser';
    END IF;
    IF job.state = 'running' AND EXISTS (
        SELECT FROM hybrid_runner.workers AS w
        WHERE w.id = job.worker_id AND w.dead_at IS NULL
            AND w.heartbeat_at + w.lease > clock_timestamp()
    ) THEN
        RETURN 'running';
    ELSIF job.state = 'running' THEN
        -- Its worker is dead. Should it live after all, its claim is void.
        UPDATE hybrid_runner.jobs AS j SET
            state = 'queued', run_at = clock_timestamp(),
            began_at = coalesce(j.began_at, j.started_at), claim = NULL, worker_id = NULL,
            started_at = NULL, cancel_requested_at = NULL, version = j.version + 1
        WHERE j.id = retry.id;
        IF job.source IS NOT NULL THEN
            PERFORM hybrid_runner.write_rows(
                job.source, ARRAY[retry.id], ARRAY[job.row_key], ARRAY['queued'], ARRAY[false],
                ARRAY[job.attempt::integer], NULL, NULL, NULL, NULL, NULL);
        END IF;
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
    IF done.source IS NOT NULL AND hybrid_runner.outranks_owner(done.source) THEN
        RAISE 'a superuser runs no code of the table''s owner: use a worker login that is no superuser';
    END IF;
    -- A worker may just be writing the end of this job into its row: that waits for nothing.
    PERFORM FROM hybrid_runner.late_rows AS l
    WHERE l.source = done.source AND l.row_key = done.row_key FOR UPDATE;
    -- A fresh set of attempts and budgets; the errors and runs of the earlier ones are kept, and so
    -- is what its last run waited for and was given; but if that was nothing, this run is not told
    -- that its time is over.
    INSERT INTO hybrid_runner.jobs
        (id, queue, kind, priority, payload, data, key, max_attempts, timeout, max_snoozes,
        max_duration, finish_within, traceparent, enqueued_by, source, row_key, schedule, tick, waits_for,
        errors,
        history, version, created_at)
    VALUES (done.id, done.queue, done.kind, done.priority, done.payload, done.data, done.key,
        done.max_attempts, done.timeout, done.max_snoozes, done.max_duration, done.finish_within,
        done.traceparent, done.enqueued_by, done.source, done.row_key, done.schedule, done.tick,
        CASE WHEN EXISTS (
            SELECT FROM hybrid_runner.waits AS w
            WHERE w.job_id = retry.id AND w.wake_of = done.snoozes
                AND (w.run IS NULL OR w.run = coalesce(done.began_at, done.started_at))
        ) THEN done.waits_for END,
        done.errors, done.history, done.version + 1, done.created_at)
    ON CONFLICT DO NOTHING;
    IF NOT FOUND THEN
        RETURN 'key_taken';
    END IF;
    DELETE FROM hybrid_runner.archive AS a
    WHERE a.id = retry.id AND a.finished_at = done.finished_at;
    UPDATE hybrid_runner.waits AS w
    SET run = NULL, wake_of = CASE WHEN w.wake_of = done.snoozes THEN 0 END
    WHERE w.job_id = retry.id AND (w.run IS NULL OR w.run = coalesce(done.began_at, done.started_at));
    IF done.source IS NOT NULL THEN
        PERFORM hybrid_runner.write_rows(
            done.source, ARRAY[retry.id], ARRAY[done.row_key], ARRAY['retried'], ARRAY[false],
            ARRAY[0], NULL, NULL, NULL, NULL, NULL);
    END IF;
    PERFORM hybrid_runner.publish(done.queue, done.kind, retry.id);
    RETURN 'queued';
END
$$;
