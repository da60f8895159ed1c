-- want_again: store a job for a row that is wanted and has none; says stored, nothing, or later:
-- somebody holds it.
CREATE OR REPLACE FUNCTION hybrid_runner.want_again(
    source integer, row_key text
) RETURNS text
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    became text;
BEGIN
    IF EXISTS (
        SELECT FROM hybrid_runner.late_rows AS l
        WHERE l.source = want_again.source AND l.row_key = want_again.row_key
    ) THEN
        RETURN 'nothing'; -- it is stored when the row is written
    END IF;
    SELECT w.outcome INTO became
    FROM hybrid_runner.write_rows(
        want_again.source, ARRAY[-1::bigint], ARRAY[want_again.row_key], ARRAY['completed'],
        ARRAY[false], ARRAY[NULL::integer], NULL, NULL, NULL, NULL, NULL, is_checked => true) AS w;
    IF became IN ('locked', 'refused') THEN -- it may be wanted no more when it is free
        DELETE FROM hybrid_runner.late_rows AS l
        WHERE l.source = want_again.source AND l.row_key = want_again.row_key;
        RETURN 'later';
    END IF;
    RETURN CASE became WHEN 'again' THEN 'stored' ELSE 'nothing' END;
END
$$;
