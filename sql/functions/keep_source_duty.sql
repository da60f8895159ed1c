-- keep_source_duty: the trigger on sources: the duty of that name is there while there are any.
-- Workers are told, and the first one whose heartbeat comes is given it. What Postgres refused to
-- write is tried at once when a table was attached again.
CREATE OR REPLACE FUNCTION hybrid_runner.keep_source_duty() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    IF EXISTS (SELECT FROM hybrid_runner.sources) THEN
        INSERT INTO hybrid_runner.duties (name, every) VALUES ('sources', '15 seconds')
        ON CONFLICT (name) DO NOTHING;
        IF TG_OP = 'UPDATE' THEN
            UPDATE hybrid_runner.late_rows AS l SET next_try_at = clock_timestamp()
            WHERE l.is_refused;
        END IF;
    ELSE
        DELETE FROM hybrid_runner.duties AS d WHERE d.name = 'sources';
    END IF;
    PERFORM hybrid_runner.notify_if_room('hybrid_runner.~sources', 'sources');
    RETURN NULL;
END
$$;
