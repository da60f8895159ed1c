-- end_expired: end as failed, with these errors, jobs that still wait as they were found: at these
-- versions; returns the ids of those that were ended. One that somebody holds is left for later.
CREATE OR REPLACE FUNCTION hybrid_runner.end_expired(
    ids bigint[], versions integer[], errors text[]
) RETURNS SETOF bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    own_ids bigint[];
    own_errors text[];
    job record;
BEGIN
    SELECT array_agg(own.id), array_agg(own.error) INTO own_ids, own_errors
    FROM (
        SELECT j.id, found.error
        FROM unnest(end_expired.ids, end_expired.versions, end_expired.errors)
            AS found (id, version, error)
        INNER JOIN hybrid_runner.jobs AS j ON j.id = found.id
        WHERE j.id = ANY (end_expired.ids) AND j.state = 'queued' AND j.version = found.version
        FOR UPDATE OF j SKIP LOCKED
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
        own_ids, NULL, array_fill('failed'::text, ARRAY[cardinality(own_ids)]),
        ARRAY[NULL::text], own_errors
    ) AS e (id);
END
$$;
