-- rows: look at rows of the table without locking them.
-- 'read': those with these keys, as JSON (fresh) where that is not too large for a job, and its
-- size. 'seen': the same without JSON, and without SQL that fails for some rows; 'judged': with
-- that; 'held': seen is who holds them (xmax).
-- 'wanted without job', 'running without job': at most so many, and none of those with these keys.
-- 'plans': how Postgres would find these two, as EXPLAIN says it, in fresh.
CREATE OR REPLACE FUNCTION hybrid_runner.<<prefix>>_rows(what text, keys text[], most integer)
RETURNS TABLE (
    row_key text, word text, is_wanted boolean, seen text, fresh text, size integer,
    stale_at timestamptz, is_cancelled boolean
)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
SET datestyle FROM CURRENT SET intervalstyle = 'postgres' SET extra_float_digits = 1
AS <<quote>>
#variable_conflict use_column
DECLARE
    plan pg_catalog.text;
BEGIN
    IF $1 = 'read' THEN
        RETURN QUERY
        SELECT
            <<row_key new>>, <<word new>>, NULL::boolean, new.xmin::text,
            CASE WHEN octet_length(printed.fresh) <= 1048576 THEN printed.fresh END,
            octet_length(printed.fresh), NULL::timestamptz, NULL::boolean
        FROM <<relation>> AS new
        CROSS JOIN LATERAL (SELECT <<fresh new>> AS fresh OFFSET 0) AS printed
        WHERE <<has_key new $2>>;
    ELSIF $1 = 'seen' THEN
        RETURN QUERY
        SELECT
            <<row_key new>>, <<word new>>, NULL::boolean,
            -- a word that no job has written
            CASE WHEN <<shows new>> <> 'other' THEN new.xmin::text END,
            NULL::text, NULL::integer, NULL::timestamptz, NULL::boolean
        FROM <<relation>> AS new
        WHERE <<has_key new $2>>;
    ELSIF $1 IN ('judged', 'held') THEN
        RETURN QUERY
        SELECT
            <<row_key new>>, <<word new>>, (<<condition new>>) IS TRUE,
            CASE WHEN $1 = 'held' THEN new.xmax::text END,
            NULL::text, NULL::integer, <<stale_at new>>, (<<cancel new>>) IS TRUE
        FROM <<relation>> AS new
        WHERE <<has_key new $2>>;
    ELSIF $1 = 'wanted without job' THEN
        RETURN QUERY
        SELECT
            <<row_key new>>, <<word new>>, true, new.xmin::text, NULL::text, NULL::integer,
            NULL::timestamptz, NULL::boolean
        FROM <<relation>> AS new
        WHERE (<<condition new>>) AND <<key_fits new>> AND <<has_no_job new>>
            AND (<<row_key new>> = ANY ($2)) IS NOT TRUE
        LIMIT $3;
    ELSIF $1 = 'running without job' THEN
        RETURN QUERY
        SELECT
            <<row_key new>>, <<word new>>, NULL::boolean, new.xmin::text, NULL::text, NULL::integer,
            <<stale_at new>>, NULL::boolean
        FROM <<relation>> AS new
        WHERE <<is_running new>> AND <<key_fits new>> AND <<has_no_job new>>
            AND (<<row_key new>> = ANY ($2)) IS NOT TRUE
        LIMIT $3;
    ELSIF $1 = 'plans' THEN
        FOR plan IN
            EXPLAIN (FORMAT JSON)
            SELECT FROM <<relation>> AS new
            WHERE (<<condition new>>) AND <<key_fits new>> AND <<has_no_job new>>
        LOOP
            fresh := plan;
            RETURN NEXT;
        END LOOP;
        FOR plan IN
            EXPLAIN (FORMAT JSON)
            SELECT FROM <<relation>> AS new
            WHERE <<is_running new>> AND <<key_fits new>> AND <<has_no_job new>>
        LOOP
            fresh := plan;
            RETURN NEXT;
        END LOOP;
    ELSE
        RAISE 'rows can be read, seen, judged, held, wanted without job, running without job, or plans, and not %', $1;
    END IF;
END
<<quote>>;
