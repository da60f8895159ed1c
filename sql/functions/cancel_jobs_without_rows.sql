-- cancel_jobs_without_rows: walk through the live jobs of an attached table, this many behind a
-- key, and cancel those whose row is gone; says the last key, or NULL at the end, and how many it
-- cancelled.
CREATE OR REPLACE FUNCTION hybrid_runner.cancel_jobs_without_rows(
    source integer, behind text, most integer, OUT last_key text, OUT cancelled integer
)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_column
DECLARE
    keys text[];
    there text[];
BEGIN
    keys := ARRAY(
        SELECT j.row_key
        FROM hybrid_runner.jobs AS j
        WHERE j.source = cancel_jobs_without_rows.source AND j.row_key > cancel_jobs_without_rows.behind
        ORDER BY j.row_key
        LIMIT most
    );
    IF cardinality(keys) = most THEN
        last_key := keys[most];
    END IF;
    there := ARRAY(SELECT r.row_key FROM hybrid_runner.rows_of_source(
        cancel_jobs_without_rows.source, 'seen', keys, NULL) AS r);
    -- They are asked once more, when their jobs are locked.
    keys := ARRAY(SELECT k.key FROM unnest(keys) AS k (key) WHERE k.key <> ALL (there) LIMIT 100);
    SELECT count(*) FILTER (WHERE a.did IN ('cancelled', 'told')) INTO cancelled
    FROM hybrid_runner.apply_to_jobs(
        cancel_jobs_without_rows.source, keys, array_fill('gone'::text, ARRAY[cardinality(keys)])) AS a;
END
$$;
