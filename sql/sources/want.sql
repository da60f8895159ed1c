-- want: store jobs for rows that are wanted and have none, at most so many; returns how many.
-- With blocks, only rows that lie in that part of the table, or of each of its partitions.
-- Rows that somebody holds are left out, since nobody knows what they will be.
CREATE OR REPLACE FUNCTION hybrid_runner.<<prefix>>_want(
    most integer, first_block bigint DEFAULT 0, blocks bigint DEFAULT NULL
) RETURNS integer
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS <<quote>>
#variable_conflict use_column
DECLARE
    made integer;
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
END
<<quote>>;
