-- upkeep_ended: write down that upkeep has ended, and return when.
CREATE OR REPLACE FUNCTION hybrid_monitors.upkeep_ended() RETURNS timestamptz
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
    UPDATE hybrid_monitors.upkeep_runs AS r SET ended_at = clock_timestamp() RETURNING r.ended_at
$$;
