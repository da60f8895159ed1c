-- updated: the trigger on UPDATE: what is wanted now, or to be cancelled, or has another key.
CREATE OR REPLACE FUNCTION hybrid_runner.<<prefix>>_updated() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
SET datestyle FROM CURRENT SET intervalstyle = 'postgres' SET extra_float_digits = 1
AS <<quote>>
#variable_conflict use_column
DECLARE
    is_cancelled boolean;
BEGIN
    <<guard>>
    IF (<<key_changed>>) THEN
        INSERT INTO hybrid_runner.<<prefix>>_changes (row_key, what)
        SELECT j.row_key, 'gone'
        FROM hybrid_runner.<<prefix>>_jobs AS j
        WHERE j.row_key = <<row_key old>>;
    END IF;
    -- Asked of every row, so that one for which it fails is refused here, and not later.
    is_cancelled := <<cancel new>>;
    IF (<<condition new>>) AND <<key_fits new>> THEN
        INSERT INTO hybrid_runner.<<prefix>>_jobs (row_key, priority, run_at, payload)
        VALUES (<<row_key new>>, <<priority new>>, <<run_at new>>, <<payload new>>)
        ON CONFLICT DO NOTHING;
        IF NOT FOUND AND (<<key_changed>>) THEN
            INSERT INTO hybrid_runner.<<prefix>>_changes (row_key, what)
            VALUES (<<row_key new>>, 'wanted');
        END IF;
    ELSIF is_cancelled THEN
        INSERT INTO hybrid_runner.<<prefix>>_changes (row_key, what)
        SELECT j.row_key, 'cancelled'
        FROM hybrid_runner.<<prefix>>_jobs AS j
        WHERE j.row_key = <<row_key new>>;
    END IF;
    <<warn new>>
    RETURN NULL;
END
<<quote>>;
