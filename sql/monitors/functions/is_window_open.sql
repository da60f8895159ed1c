-- is_window_open: whether a maintenance window is open at this time; with `every` it opens again
-- and again, by seconds and not by calendars.
CREATE OR REPLACE FUNCTION hybrid_monitors.is_window_open(
    begins timestamptz, ends timestamptz, every interval, at timestamptz
) RETURNS boolean
LANGUAGE sql IMMUTABLE
AS $$
    SELECT begins <= at AND CASE WHEN every IS NULL THEN at < ends
        ELSE pg_catalog.mod(
            extract(epoch FROM at) - extract(epoch FROM begins),
            greatest(extract(epoch FROM every), 1)
        ) < extract(epoch FROM ends) - extract(epoch FROM begins) END
$$;
