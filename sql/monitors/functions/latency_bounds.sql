-- latency_bounds: up to how many milliseconds each place of hours.buckets counts; the last place
-- counts what is more.
CREATE OR REPLACE FUNCTION hybrid_monitors.latency_bounds() RETURNS integer[]
LANGUAGE sql IMMUTABLE
AS $$
    SELECT ARRAY[1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000, 20000, 60000]
$$;
