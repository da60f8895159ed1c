-- outranks_owner: true if session_user can become a superuser and the table's owner cannot: no code
-- of that owner runs in the session, neither triggers nor policies nor casts.
CREATE OR REPLACE FUNCTION hybrid_runner.outranks_owner(source integer) RETURNS boolean
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    RETURN EXISTS (
        SELECT
        FROM hybrid_runner.sources AS s
        JOIN pg_class AS c ON c.oid = s.relation
        JOIN pg_roles AS r ON r.rolsuper AND pg_has_role(session_user, r.oid, 'MEMBER')
            AND NOT pg_has_role(c.relowner, r.oid, 'MEMBER')
        WHERE s.id = outranks_owner.source
    );
END
$$;
