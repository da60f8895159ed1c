-- cancel: end a queued job, ask a running one to stop; says cancelled, requested, finished or
-- unknown. by_row: its row of an attached table asks for it.
-- A superuser is refused where that would write a row of another role's table.
CREATE OR REPLACE FUNCTION hybrid_runner.cancel(
    id bigint, reason text DEFAULT NULL, by_row boolean DEFAULT false
) RETURNS text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_column
DECLARE
    job hybrid_runner.jobs;
BEGIN
    -- Locked first: between a claim and this call there is one order.
    SELECT j.* INTO job FROM hybrid_runner.jobs AS j WHERE j.id = cancel.id FOR UPDATE;
    IF NOT FOUND THEN
        RETURN CASE WHEN EXISTS (SELECT FROM hybrid_runner.archived(ARRAY[cancel.id]))
            THEN 'finished' ELSE 'unknown' END;
    END IF;
    -- A job whose worker is dead has nobody to tell: it ends here. Should that worker live after
    -- all, its claim is void.
    -- One whose key begins with '>' has not begun: a worker is just asking whether it may.
    IF job.state = 'running' AND starts_with(job.key, '>') IS NOT TRUE AND EXISTS (
        SELECT FROM hybrid_runner.workers AS w
        WHERE w.id = job.worker_id AND w.dead_at IS NULL
            AND w.heartbeat_at + w.lease > clock_timestamp()
    ) THEN
        UPDATE hybrid_runner.jobs AS j SET
            cancel_requested_at = clock_timestamp(),
            errors = CASE
                WHEN jsonb_typeof(j.errors) <> 'array' THEN jsonb_build_array(j.errors)
                WHEN jsonb_array_length(j.errors) >= 20 THEN j.errors - 0
                ELSE coalesce(j.errors, '[]')
            END || jsonb_build_object(
                'at', clock_timestamp(), 'attempt', j.attempt, 'type', 'Cancel',
                'message', coalesce(left(cancel.reason, 4096), 'cancelled while running')),
            version = j.version + 1
        WHERE j.id = cancel.id AND j.cancel_requested_at IS NULL;
        PERFORM hybrid_runner.notify_if_room('hybrid_runner.' || job.queue, 'cancel ' || cancel.id);
        PERFORM hybrid_runner.publish(job.queue, job.kind, cancel.id);
        RETURN 'requested';
    END IF;
    IF job.source IS NOT NULL AND hybrid_runner.outranks_owner(job.source) THEN
        RAISE 'a superuser runs no code of the table''s owner: use a worker login that is no superuser';
    END IF;
    BEGIN
        PERFORM job.payload::text, job.data::text, job.progress::text, job.errors::text,
            job.history::text;
    EXCEPTION
        WHEN OTHERS THEN -- it is older than the limits, or damaged: the archive can be read
            UPDATE hybrid_runner.jobs AS j
                SET payload = 'null', data = NULL, progress = NULL, errors = NULL, history = NULL
                WHERE j.id = cancel.id;
    END;
    PERFORM hybrid_runner.end_jobs(
        ARRAY[cancel.id], ARRAY[NULL::bigint], ARRAY['cancelled'], ARRAY[NULL::text],
        ARRAY[jsonb_build_object(
            'at', clock_timestamp(), 'attempt', job.attempt, 'type', 'Cancel',
            'message', coalesce(left(cancel.reason, 4096), 'cancelled while ' || job.state))::text],
        cancelled_at => clock_timestamp(), attached => job.source IS NOT NULL,
        by_row => cancel.by_row);
    PERFORM hybrid_runner.publish(job.queue, job.kind, cancel.id);
    -- No worker was there: one of them reports it at its next heartbeat.
    INSERT INTO hybrid_runner.unreported_ends (id) VALUES (cancel.id)
    -- It was cancelled before and retried, and somebody may be reporting that end.
    ON CONFLICT ON CONSTRAINT unreported_ends_pkey DO UPDATE SET ended_at = clock_timestamp(), taken_at = NULL;
    RETURN 'cancelled';
END
$$;
