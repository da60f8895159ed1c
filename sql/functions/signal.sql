-- signal: store a signal: every job that waits for the key gets it, once, and so does whoever
-- begins to wait for it within seven days, if the job was there before the signal. Returns its id;
-- with `once` NULL if that key was signalled so before.
CREATE OR REPLACE FUNCTION hybrid_runner.signal(
    key text, payload jsonb DEFAULT 'null', once boolean DEFAULT false
) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    sent bigint;
BEGIN
    IF key IS NULL OR octet_length(key) NOT BETWEEN 1 AND 512 THEN
        RAISE EXCEPTION 'the key of a signal must be 1 to 512 bytes, not %',
            coalesce(octet_length(key)::text, 'NULL')
            USING ERRCODE = 'invalid_parameter_value';
    END IF;
    INSERT INTO hybrid_runner.signals AS s (key, payload, once)
    VALUES (signal.key, coalesce(signal.payload, 'null'), coalesce(signal.once, false))
    ON CONFLICT DO NOTHING
    RETURNING s.id INTO sent;
    RETURN sent;
END
$$;
