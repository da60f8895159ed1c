-- lamp_left: how many milliseconds the lamp shines on; one that seems to for longer than a minute was lit by a clock that was set back since.
CREATE OR REPLACE FUNCTION hybrid_runner.lamp_left() RETURNS integer
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
    SELECT CASE WHEN left_over.ms BETWEEN 1 AND 60000 THEN left_over.ms::integer ELSE 0 END
    FROM (
        SELECT pg_sequence_last_value('hybrid_runner.lamp') - (extract(epoch FROM clock_timestamp()) * 1000)::bigint
    ) AS left_over (ms)
$$;
