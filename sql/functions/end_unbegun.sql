-- end_unbegun: of the next jobs that wait and have a limit of time, by kind and id, end as
-- cancelled those that were to begin by start_by, which passed so long ago, and have not begun;
-- returns who was read last, or NULL at the end, and the ids of those that were ended. Workers do
-- that themselves at their next look: this is for jobs that none of them looks at.
CREATE OR REPLACE FUNCTION hybrid_runner.end_unbegun(
    past interval, after_kind text, after_id bigint, most integer
) RETURNS TABLE (last_kind text, last_id bigint, ended bigint[])
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    late bigint[];
    own_ids bigint[];
    own_errors text[];
    job record;
BEGIN
    WITH read AS MATERIALIZED (
        SELECT j.kind, j.id, j.start_by, j.began_at, j.attempt
        FROM hybrid_runner.jobs AS j
        WHERE j.state = 'queued'
            AND (j.began_at IS NOT NULL OR j.finish_by IS NOT NULL OR j.finish_within IS NOT NULL OR j.start_by IS NOT NULL)
            AND (j.kind, j.id) > (after_kind, after_id)
        ORDER BY j.kind, j.id
        LIMIT most
    ),
    last AS (
        SELECT r.kind, r.id FROM read AS r WHERE (SELECT count(*) FROM read) = most ORDER BY r.kind DESC, r.id DESC LIMIT 1
    )
    SELECT
        (SELECT l.kind FROM last AS l), (SELECT l.id FROM last AS l),
        ARRAY(
            SELECT r.id FROM read AS r
            WHERE r.start_by <= clock_timestamp() - past AND r.began_at IS NULL AND r.attempt = 0
        )
    INTO last_kind, last_id, late;
    SELECT array_agg(own.id), array_agg(jsonb_build_object(
        'at', clock_timestamp(), 'attempt', 0, 'type', 'Expired',
        'message', format('start_by (%s) passed before it could begin', own.start_by))::text)
    INTO own_ids, own_errors
    FROM (
        SELECT j.id, j.start_by
        FROM hybrid_runner.jobs AS j
        WHERE j.id = ANY (late) AND j.state = 'queued' AND j.began_at IS NULL AND j.attempt = 0
            AND j.start_by <= clock_timestamp() - past
        FOR UPDATE SKIP LOCKED
    ) AS own;
    IF own_ids IS NOT NULL THEN
        FOR job IN
            SELECT j.id, j.queue, j.kind FROM hybrid_runner.jobs AS j WHERE j.id = ANY (own_ids)
        LOOP
            PERFORM hybrid_runner.publish(job.queue, job.kind, job.id);
        END LOOP;
        -- No worker was there: one of them reports it at its next heartbeat.
        INSERT INTO hybrid_runner.unreported_ends (id) SELECT o.id FROM unnest(own_ids) AS o (id)
        ON CONFLICT ON CONSTRAINT unreported_ends_pkey
            DO UPDATE SET ended_at = clock_timestamp(), taken_at = NULL;
    END IF;
    ended := CASE WHEN own_ids IS NULL THEN '{}' ELSE ARRAY(
        SELECT e.id
        FROM hybrid_runner.end_jobs(
            own_ids, NULL, array_fill('cancelled'::text, ARRAY[cardinality(own_ids)]),
            ARRAY[NULL::text], own_errors
        ) AS e (id)
    ) END;
    RETURN NEXT;
END
$$;
