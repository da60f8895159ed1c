-- has_room: whether a job can be given the items of another one (collect): one that runs or has
-- begun keeps what it was given, and so does one of another kind.
CREATE OR REPLACE FUNCTION hybrid_runner.has_room(
    job hybrid_runner.jobs, new hybrid_runner.jobs, max_items integer
) RETURNS boolean
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    its jsonb := hybrid_runner.items_of(job.payload);
    more jsonb := hybrid_runner.items_of(new.payload);
BEGIN
    -- Two lists in one have as many brackets and commas as the two.
    RETURN job.id IS NOT NULL AND job.kind = new.kind AND job.began_at IS NULL
        AND (job.state = 'queued' AND job.attempt = 0 OR starts_with(job.key, '>'))
        AND jsonb_array_length(its) + jsonb_array_length(more) <= max_items
        AND octet_length(its::text) + octet_length(more::text) <= 1048576;
END
$$;
