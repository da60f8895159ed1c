-- inserted: the trigger on INSERT: store jobs for the rows that are wanted.
-- A job that is there is of an earlier row with this key, and may end before this row can be seen:
-- that is noted.
CREATE OR REPLACE FUNCTION hybrid_runner.<<prefix>>_inserted() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
SET datestyle FROM CURRENT SET intervalstyle = 'postgres' SET extra_float_digits = 1
AS <<quote>>
#variable_conflict use_column
DECLARE
    wanted integer;
    made text[];
BEGIN
    <<guard>>
    WITH asked AS MATERIALIZED (
        SELECT
            <<row_key new>> AS row_key, <<priority new>> AS priority, <<run_at new>> AS run_at,
            <<payload new>> AS payload,
            -- so that a row for which it fails is refused here, and not later
            (<<cancel new>>) AS is_cancelled
        FROM inserted AS new
        WHERE (<<condition new>>) AND <<key_fits new>>
    ),
    added AS (
        INSERT INTO hybrid_runner.<<prefix>>_jobs AS j (row_key, priority, run_at, payload)
        SELECT a.row_key, a.priority, a.run_at, a.payload
        FROM asked AS a
        ON CONFLICT DO NOTHING
        RETURNING j.row_key
    )
    SELECT (SELECT count(*) FROM asked), ARRAY(SELECT a.row_key FROM added AS a) INTO wanted, made;
    IF cardinality(made) < wanted THEN
        INSERT INTO hybrid_runner.<<prefix>>_changes (row_key, what)
        SELECT w.row_key, 'wanted'
        FROM (
            SELECT <<row_key new>> AS row_key
            FROM inserted AS new
            WHERE (<<condition new>>) AND <<key_fits new>>
        ) AS w
        -- where no column of the table can be meant
        WHERE w.row_key <> ALL (made);
    END IF;
    <<warn inserted>>
    RETURN NULL;
END
<<quote>>;
