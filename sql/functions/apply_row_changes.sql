-- apply_row_changes: do for jobs what rows of one table ask for, as triggers noted it; looks at the
-- changes behind a number, so many at most, and says what apply_to_jobs() did with each.
-- Those that have to wait are kept: 'later'.
CREATE OR REPLACE FUNCTION hybrid_runner.apply_row_changes(
    source integer, behind bigint, most integer
) RETURNS TABLE (id bigint, row_key text, what text, did text, refused text)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_column
DECLARE
    ids bigint[];
    keys text[];
    whats text[];
    done bigint[] := '{}';
BEGIN
    SELECT array_agg(c.id ORDER BY c.id), array_agg(c.row_key ORDER BY c.id), array_agg(c.what ORDER BY c.id)
    INTO ids, keys, whats
    FROM (
        SELECT r.id, r.row_key, r.what
        FROM hybrid_runner.row_changes AS r
        WHERE r.source = apply_row_changes.source AND r.id > apply_row_changes.behind
        ORDER BY r.id
        LIMIT apply_row_changes.most
    ) AS c;
    IF ids IS NULL THEN
        RETURN;
    END IF;
    FOR id, row_key, what, did, refused IN
        SELECT ids[a.place], keys[a.place], whats[a.place], a.did, a.refused
        FROM hybrid_runner.apply_to_jobs(apply_row_changes.source, keys, whats) AS a
    LOOP
        IF did <> 'later' THEN
            done := done || id;
        END IF;
        RETURN NEXT;
    END LOOP;
    DELETE FROM hybrid_runner.row_changes AS r WHERE r.id = ANY (done);
END
$$;
