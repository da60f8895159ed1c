-- estimate: the planner's guess at how many rows a query has: from statistics and the size of the
-- table, without reading it.
CREATE OR REPLACE FUNCTION hybrid_runner.estimate(query text) RETURNS bigint
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    plan json;
BEGIN
    EXECUTE 'EXPLAIN (FORMAT JSON) ' || query INTO plan;
    RETURN (plan -> 0 -> 'Plan' ->> 'Plan Rows')::numeric::bigint;
END
$$;
