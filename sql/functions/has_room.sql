-- has_room: whether a job can be given more items (collect): one that runs or has begun keeps what
-- it was given, and so does one of another kind.
CREATE OR REPLACE FUNCTION hybrid_runner.has_room(
    id bigint, kind text, items jsonb, max_items integer
) RETURNS boolean
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    job hybrid_runner.jobs;
    its jsonb;
BEGIN
    SELECT j.* INTO job FROM hybrid_runner.jobs AS j WHERE j.id = has_room.id;
    IF NOT FOUND OR job.kind <> has_room.kind OR job.began_at IS NOT NULL
        OR (job.state = 'running' OR job.attempt > 0) AND NOT starts_with(job.key, '>') THEN
        RETURN false;
    END IF;
    its := hybrid_runner.items_of(job.payload);
    -- Two lists in one have as many brackets and commas as the two.
    RETURN jsonb_array_length(its) + jsonb_array_length(items) <= max_items
        AND octet_length(its::text) + octet_length(items::text) <= 1048576;
END
$$;
