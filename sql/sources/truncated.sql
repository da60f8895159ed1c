-- truncated: the trigger on TRUNCATE: all rows that have a job are gone.
CREATE OR REPLACE FUNCTION hybrid_runner.<<prefix>>_truncated() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS <<quote>>
BEGIN
    <<guard>>
    INSERT INTO hybrid_runner.<<prefix>>_changes (row_key, what)
    SELECT j.row_key, 'gone'
    FROM hybrid_runner.<<prefix>>_jobs AS j;
    RETURN NULL;
END
<<quote>>;
