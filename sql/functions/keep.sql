-- keep: how long ended jobs of one state are kept, of all kinds or of one; NULL removes the
-- exception of a kind. To forget sooner than by an hour, or an exception, is for administrators: a
-- worker may not delete what has ended.
CREATE OR REPLACE FUNCTION hybrid_runner.keep(
    state text, keep interval, kind text DEFAULT ''
) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_column
DECLARE
    may_forget boolean := pg_has_role(session_user, current_user, 'MEMBER') OR EXISTS (
        SELECT FROM pg_roles AS r WHERE r.rolname = 'hybrid_runner_admin'
            AND pg_has_role(session_user, r.oid, 'MEMBER')
    );
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
    ELSIF NOT may_forget AND coalesce(keep.keep < '1 hour', true) AND NOT EXISTS (
        SELECT FROM hybrid_runner.retention AS r
        WHERE r.state = keep.state::hybrid_runner.job_state AND r.kind = keep.kind
            AND r.keep <= keep.keep
    ) THEN
        RAISE EXCEPTION 'keep must be an hour or more, unless hybrid_runner_admin says so'
            USING ERRCODE = 'insufficient_privilege';
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
