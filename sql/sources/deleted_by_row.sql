-- deleted_by_row: the trigger on DELETE of a partitioned table; a row that moves comes by here too.
CREATE OR REPLACE FUNCTION hybrid_runner.<<prefix>>_deleted() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
SET datestyle FROM CURRENT SET intervalstyle = 'postgres' SET extra_float_digits = 1
AS <<quote>>
#variable_conflict use_column
BEGIN
    <<guard>>
    INSERT INTO hybrid_runner.<<prefix>>_changes (row_key, what)
    SELECT j.row_key, 'gone'
    FROM hybrid_runner.<<prefix>>_jobs AS j
    WHERE j.row_key = <<row_key old>>;
    RETURN NULL;
END
<<quote>>;
