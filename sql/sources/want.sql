-- want: store jobs for rows that are wanted and have none, at most so many; returns how many.
-- With blocks, only rows that lie in that part of the table, or of each of its partitions.
-- Locked rows are left out, since what they will be is not known. So are those for
-- which the SQL over rows fails: if one is met, each is asked alone.
CREATE OR REPLACE FUNCTION hybrid_runner.<<prefix>>_want(
    most integer, first_block bigint DEFAULT 0, blocks bigint DEFAULT NULL
) RETURNS integer
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
SET datestyle FROM CURRENT SET intervalstyle = 'postgres' SET extra_float_digits = 1
AS <<quote>>
#variable_conflict use_column
DECLARE
    made integer;
    new record;
    failed integer := 0;
    why text;
BEGIN
    IF $3 IS NULL THEN
        WITH wanted AS MATERIALIZED (
            SELECT
                <<row_key new>> AS row_key, <<priority new>> AS priority, <<run_at new>> AS run_at,
                <<payload new>> AS payload
            FROM <<relation>> AS new
            WHERE (<<condition new>>) AND <<key_fits new>> AND <<has_no_job new>>
            LIMIT $1
            FOR NO KEY UPDATE OF new SKIP LOCKED
        )
        INSERT INTO hybrid_runner.<<prefix>>_jobs (row_key, priority, run_at, payload)
        SELECT w.row_key, w.priority, w.run_at, w.payload
        FROM wanted AS w
        ON CONFLICT DO NOTHING;
    ELSE
        WITH wanted AS MATERIALIZED (
            SELECT
                <<row_key new>> AS row_key, <<priority new>> AS priority, <<run_at new>> AS run_at,
                <<payload new>> AS payload
            FROM <<relation>> AS new
            WHERE new.ctid >= format('(%s,0)', $2)::tid AND new.ctid < format('(%s,0)', $2 + $3)::tid
                AND (<<condition new>>) AND <<key_fits new>> AND <<has_no_job new>>
            LIMIT $1
            FOR NO KEY UPDATE OF new SKIP LOCKED
        )
        INSERT INTO hybrid_runner.<<prefix>>_jobs (row_key, priority, run_at, payload)
        SELECT w.row_key, w.priority, w.run_at, w.payload
        FROM wanted AS w
        ON CONFLICT DO NOTHING;
    END IF;
    GET DIAGNOSTICS made = ROW_COUNT;
    RETURN made;
EXCEPTION
    WHEN data_exception OR integrity_constraint_violation OR raise_exception THEN
        IF $1 = 0 THEN
            RAISE; -- it fails for every row
        END IF;
        made := 0;
        FOR new IN
            SELECT t.*
            FROM <<relation>> AS t
            WHERE <<is_queued t>> AND <<has_no_job t>>
                AND ($3 IS NULL OR t.ctid >= format('(%s,0)', $2)::tid AND t.ctid < format('(%s,0)', $2 + $3)::tid)
            FOR NO KEY UPDATE OF t SKIP LOCKED
        LOOP
            EXIT WHEN made >= $1;
            BEGIN
                IF (<<condition new>>) AND <<key_fits new>> THEN
                    INSERT INTO hybrid_runner.<<prefix>>_jobs (row_key, priority, run_at, payload)
                    VALUES (<<row_key new>>, <<priority new>>, <<run_at new>>, <<payload new>>)
                    ON CONFLICT DO NOTHING;
                    made := made + CASE WHEN FOUND THEN 1 ELSE 0 END;
                END IF;
            EXCEPTION
                WHEN data_exception OR integrity_constraint_violation OR raise_exception THEN
                    failed := failed + 1;
                    why := SQLERRM;
            END;
        END LOOP;
        IF failed > 0 THEN
            RAISE WARNING 'hybrid_runner: the SQL over rows of % fails for % of them, which get no job: %',
                <<relation_word>>, failed, why;
        END IF;
        RETURN made;
END
<<quote>>;
