-- pause: no worker claims from this queue until it is resumed; false if it was paused already.
CREATE OR REPLACE FUNCTION hybrid_runner.pause(queue text) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    PERFORM hybrid_runner.open_queue(queue);
    UPDATE hybrid_runner.queues AS q SET paused_at = clock_timestamp()
        WHERE q.name = queue AND q.paused_at IS NULL;
    RETURN FOUND;
END
$$;
