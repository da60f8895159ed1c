-- tick_clock: the time by which schedules fire. In one place, so that a test can have another.
-- It is put into whatever calls it as it is planned, and costs nothing.
CREATE OR REPLACE FUNCTION hybrid_runner.tick_clock() RETURNS timestamptz
LANGUAGE sql VOLATILE
AS $$
    SELECT pg_catalog.clock_timestamp()
$$;
