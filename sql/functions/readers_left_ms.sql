-- readers_left_ms: for how many milliseconds more somebody reads event streams; 0: nobody does.
-- What seems to last for longer than a minute was written by a clock that was set back since.
CREATE OR REPLACE FUNCTION hybrid_runner.readers_left_ms() RETURNS integer
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
    SELECT CASE WHEN left_over.ms BETWEEN 1 AND 60000 THEN left_over.ms::integer ELSE 0 END
    FROM (
        SELECT pg_sequence_last_value('hybrid_runner.stream_readers_until')
            - (extract(epoch FROM clock_timestamp()) * 1000)::bigint
    ) AS left_over (ms)
$$;
