-- deleted: the trigger on DELETE: note the rows that have a job.
CREATE OR REPLACE FUNCTION hybrid_runner.<<prefix>>_deleted() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
SET datestyle FROM CURRENT SET intervalstyle = 'postgres' SET extra_float_digits = 1
AS <<quote>>
#variable_conflict use_column
BEGIN
    <<guard>>
    -- One look by the index for each row, whatever the plan was made for.
    INSERT INTO hybrid_runner.<<prefix>>_changes (row_key, what)
    SELECT live.row_key, 'gone'
    FROM deleted AS old
    CROSS JOIN LATERAL (
        SELECT j.row_key
        FROM hybrid_runner.<<prefix>>_jobs AS j
        WHERE j.row_key = <<row_key old>>
        LIMIT 1
    ) AS live;
    RETURN NULL;
END
<<quote>>;
