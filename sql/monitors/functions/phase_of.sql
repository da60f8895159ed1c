-- phase_of: where in its interval a service comes when many are spread, as a share of it: the
-- golden ratio spreads ids in a row, and any others, evenly.
CREATE OR REPLACE FUNCTION hybrid_monitors.phase_of(id bigint) RETURNS double precision
LANGUAGE sql IMMUTABLE STRICT
AS $$
    SELECT (pg_catalog.mod(id::numeric * 0.618033988749894848204586834365638118, 1))::double precision
$$;
