-- take_ended: take ended jobs out of jobs; returns them as the archive will have them. For
-- end_jobs, which says what its arguments are.
CREATE OR REPLACE FUNCTION hybrid_runner.take_ended(
    ids bigint[], claims bigint[], states text[], results text[], errors text[],
    cancelled_at timestamptz
) RETURNS SETOF hybrid_runner.archive
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    RETURN QUERY
    WITH settled AS (
        SELECT
            s.id, s.claim,
            CASE WHEN take_ended.states IS NULL THEN 'completed' ELSE s.state END AS state,
            CASE WHEN take_ended.results IS NULL THEN jsonb 'null' ELSE s.result END AS result,
            s.error
        FROM unnest(
            take_ended.ids, take_ended.claims, take_ended.states, take_ended.results::jsonb[],
            take_ended.errors::jsonb[]
        ) AS s (id, claim, state, result, error)
    )
    DELETE FROM hybrid_runner.jobs AS j USING settled AS s
    -- The ids stand beside the join so that no plan can choose to walk the table.
    WHERE j.id = ANY (take_ended.ids) AND j.id = s.id
        -- No test of the state: a queued job has no claim, and the planner would expect one row
        -- and join in loops.
        AND (j.claim = s.claim OR s.claim IS NULL)
    RETURNING
        j.id, j.queue, j.kind, j.priority, j.payload, j.data, j.key, j.run_at, j.max_attempts,
        j.timeout, j.finish_by, j.start_by, j.max_snoozes, j.max_duration, j.finish_within, j.traceparent,
        j.enqueued_by, j.source, j.row_key, j.schedule, j.tick, s.state::hybrid_runner.job_state,
        -- Failed from the queue: the attempt that could not begin counts.
        CASE
            WHEN j.state = 'queued' AND s.state = 'failed' THEN (j.attempt + 1)::smallint
            ELSE j.attempt
        END,
        j.snoozes, coalesce(j.began_at, j.started_at), j.waits_for, j.claim, j.worker_id,
        j.started_at, j.progress,
        CASE
            WHEN s.error IS NULL THEN j.errors
            -- somebody with a worker's login has written it
            WHEN jsonb_typeof(j.errors) <> 'array' THEN jsonb_build_array(j.errors, s.error)
            WHEN jsonb_array_length(j.errors) >= 20 THEN (j.errors - 0) || s.error
            ELSE coalesce(j.errors, '[]') || s.error
        END,
        j.history, j.version + 1, coalesce(j.cancel_requested_at, take_ended.cancelled_at),
        j.created_at, clock_timestamp(), s.result, NULL::bigint[];
END
$$;
