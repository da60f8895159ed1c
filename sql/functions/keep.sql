-- keep: how long ended jobs of one state are kept, of all kinds or of one; NULL removes the
-- exception of a kind.
CREATE OR REPLACE FUNCTION hybrid_runner.keep(
    state text, keep interval, kind text DEFAULT ''
) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_column
BEGIN
    IF keep.state IS NULL OR keep.state NOT IN ('completed', 'failed', 'cancelled') THEN
        RAISE EXCEPTION 'state must be completed, failed or cancelled, not %',
            coalesce(keep.state, 'NULL')
            USING ERRCODE = 'invalid_parameter_value';
    ELSIF keep.kind IS NULL OR length(keep.kind) > 128 THEN
        RAISE EXCEPTION 'kind must be 0 to 128 characters'
            USING ERRCODE = 'invalid_parameter_value';
    ELSIF keep.keep <= '0' OR keep.keep > '3653 days' THEN
        RAISE EXCEPTION 'keep must be more than zero and at most ten years, not %', keep.keep
            USING ERRCODE = 'invalid_parameter_value';
    ELSIF keep.keep IS NOT NULL THEN
        INSERT INTO hybrid_runner.retention AS r (state, kind, keep)
        VALUES (keep.state::hybrid_runner.job_state, keep.kind, keep.keep)
        ON CONFLICT (state, kind) DO UPDATE SET keep = excluded.keep WHERE r.keep <> excluded.keep;
    ELSIF keep.kind = '' THEN
        RAISE EXCEPTION 'keep is missing: only the exception of a kind can be removed'
            USING ERRCODE = 'invalid_parameter_value';
    ELSE
        DELETE FROM hybrid_runner.retention AS r
        WHERE r.state = keep.state::hybrid_runner.job_state AND r.kind = keep.kind;
    END IF;
END
$$;
