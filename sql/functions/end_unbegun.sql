-- end_unbegun: end as cancelled jobs that still wait although they were to begin by start_by, which
-- passed so long ago, and that have not begun; returns the ids of those that were ended. Workers do
-- that themselves at their next look: this is for jobs that none of them looks at.
CREATE OR REPLACE FUNCTION hybrid_runner.end_unbegun(past interval, most integer) RETURNS SETOF bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    own_ids bigint[];
    own_errors text[];
    job record;
BEGIN
    SELECT array_agg(own.id), array_agg(jsonb_build_object(
        'at', clock_timestamp(), 'attempt', 0, 'type', 'Expired',
        'message', format('start_by (%s) passed before it could begin', own.start_by))::text)
    INTO own_ids, own_errors
    FROM (
        SELECT j.id, j.start_by
        FROM hybrid_runner.jobs AS j
        WHERE j.start_by <= clock_timestamp() - past AND j.state = 'queued'
            AND j.began_at IS NULL AND j.attempt = 0
        ORDER BY j.start_by
        LIMIT most
        FOR UPDATE SKIP LOCKED
    ) AS own;
    IF own_ids IS NULL THEN
        RETURN;
    END IF;
    FOR job IN
        SELECT j.id, j.queue, j.kind FROM hybrid_runner.jobs AS j WHERE j.id = ANY (own_ids)
    LOOP
        PERFORM hybrid_runner.publish(job.queue, job.kind, job.id);
    END LOOP;
    -- No worker was there: one of them reports it at its next heartbeat.
    INSERT INTO hybrid_runner.unreported_ends (id) SELECT o.id FROM unnest(own_ids) AS o (id)
    ON CONFLICT ON CONSTRAINT unreported_ends_pkey
        DO UPDATE SET ended_at = clock_timestamp(), taken_at = NULL;
    RETURN QUERY
    SELECT e.id
    FROM hybrid_runner.end_jobs(
        own_ids, NULL, array_fill('cancelled'::text, ARRAY[cardinality(own_ids)]),
        ARRAY[NULL::text], own_errors
    ) AS e (id);
END
$$;
