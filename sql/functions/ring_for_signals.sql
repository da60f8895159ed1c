-- ring_for_signals: the trigger on signals: tell the workers, who look for jobs that wait.
-- Also when nobody waits: who begins to wait now may look before this transaction has committed.
CREATE OR REPLACE FUNCTION hybrid_runner.ring_for_signals() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    IF (SELECT count(DISTINCT i.key) FROM inserted AS i) <= 100 THEN
        PERFORM hybrid_runner.notify_if_room(hybrid_runner.signals_channel(), i.key)
        FROM (SELECT DISTINCT n.key FROM inserted AS n) AS i;
    ELSE
        PERFORM hybrid_runner.notify_if_room(hybrid_runner.signals_channel(), '');
    END IF;
    RETURN NULL;
END
$$;
