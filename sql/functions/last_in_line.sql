-- last_in_line: who waits last for a key, else who has it; no row: nobody.
-- For a moment, while somebody holds one that waits, there can be a gap in the line: it is read on
-- behind that.
CREATE OR REPLACE FUNCTION hybrid_runner.last_in_line(
    key text
) RETURNS TABLE (
    id bigint, key text, state hybrid_runner.job_state, kind text, queue text, enqueued_by text,
    attempt smallint, began_at timestamptz, created_at timestamptz, version integer
)
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
END
$$;
