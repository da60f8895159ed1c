-- resume: workers claim from this queue again; false if it was not paused.
CREATE OR REPLACE FUNCTION hybrid_runner.resume(queue text) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    UPDATE hybrid_runner.queues AS q SET paused_at = NULL
        WHERE q.name = queue AND q.paused_at IS NOT NULL;
    IF FOUND THEN
        -- Not as a full worker asks for help: what is found now had no ring of its own, and that is
        -- no wonder.
        PERFORM hybrid_runner.notify_if_room('hybrid_runner.' || queue, 'help resumed');
    END IF;
    RETURN FOUND;
END
$$;
