-- rename_dependencies: give dependencies the canonical names that aliases have now; so many at a
-- time, and returns how many.
CREATE OR REPLACE FUNCTION hybrid_monitors.rename_dependencies(
    most integer DEFAULT 10000
) RETURNS integer
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    renamed integer;
BEGIN
    UPDATE hybrid_monitors.dependencies AS d
    SET canonical_name = n.canonical_name
    FROM (
        SELECT o.id, coalesce(a.canonical_name, o.name) AS canonical_name
        FROM hybrid_monitors.dependencies AS o
        LEFT JOIN hybrid_monitors.aliases AS a ON a.alias = o.name
        WHERE o.canonical_name <> coalesce(a.canonical_name, o.name)
        LIMIT most
        FOR NO KEY UPDATE OF o SKIP LOCKED
    ) AS n
    WHERE d.id = n.id;
    GET DIAGNOSTICS renamed = ROW_COUNT;
    RETURN renamed;
END
$$;
