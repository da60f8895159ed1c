-- rows_of_source: rows of an attached table, as the function says that was made for it: what is
-- 'read', 'seen', 'judged' or 'held' (these keys), 'running without job', or 'plans' (how such rows
-- would be found).
CREATE OR REPLACE FUNCTION hybrid_runner.rows_of_source(
    source integer, what text, keys text[], most integer
) RETURNS TABLE (
    row_key text, word text, is_wanted boolean, seen text, fresh text, size integer,
    stale_at timestamptz, is_cancelled boolean
)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    IF hybrid_runner.outranks_owner(rows_of_source.source) THEN
        RAISE 'a superuser runs no code of the table''s owner: use a worker login that is no superuser, or attach it anew';
    END IF;
    RETURN QUERY EXECUTE format(
        'SELECT r.row_key, r.word, r.is_wanted, r.seen, r.fresh, r.size, r.stale_at, r.is_cancelled'
        ' FROM hybrid_runner.%I($1, $2, $3) AS r', 'source_' || rows_of_source.source || '_rows'
    ) USING rows_of_source.what, rows_of_source.keys, rows_of_source.most;
END
$$;
