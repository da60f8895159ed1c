-- outranks_owner: true if the session, its login, or the owner of what was made for the table can
-- become a superuser that a role behind the table cannot: no code of that role runs here.
-- Behind the table are its owner, those of its partitions and children, and the owner of its
-- schema, who can put another table in its place. A table that is gone or renamed has none.
CREATE OR REPLACE FUNCTION hybrid_runner.outranks_owner(source integer) RETURNS boolean
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    acting oid[] := ARRAY(
        -- SET SESSION AUTHORIZATION can be taken back by what it runs.
        SELECT a.usesysid FROM pg_stat_get_activity(pg_backend_pid()) AS a
        UNION ALL
        SELECT p.proowner
        FROM pg_proc AS p
        WHERE p.proname = 'source_' || outranks_owner.source || '_write'
            AND p.pronamespace = 'hybrid_runner'::regnamespace
    );
    superusers oid[] := ARRAY(
        SELECT r.oid
        FROM pg_roles AS r
        WHERE r.rolsuper AND (
            pg_has_role(session_user, r.oid, 'MEMBER')
            OR EXISTS (SELECT FROM unnest(acting) AS a (role) WHERE pg_has_role(a.role, r.oid, 'MEMBER'))
        )
    );
BEGIN
    RETURN superusers <> '{}' AND EXISTS (
        WITH RECURSIVE touched (oid) AS (
            SELECT s.relation::oid FROM hybrid_runner.sources AS s WHERE s.id = outranks_owner.source
            UNION
            SELECT i.inhrelid FROM touched AS t JOIN pg_inherits AS i ON i.inhparent = t.oid
        ),
        behind (role) AS (
            SELECT c.relowner FROM touched AS t LEFT JOIN pg_class AS c ON c.oid = t.oid
            UNION
            SELECT CASE WHEN n.nspowner = 'pg_database_owner'::regrole THEN d.datdba ELSE n.nspowner END
            FROM hybrid_runner.sources AS s
            JOIN pg_database AS d ON d.datname = current_database()
            LEFT JOIN pg_class AS c ON c.oid = s.relation
            LEFT JOIN pg_namespace AS n
                ON n.oid = c.relnamespace AND s.relation_name = format('%I.%I', n.nspname, c.relname)
            WHERE s.id = outranks_owner.source
        )
        SELECT
        FROM behind AS b
        WHERE EXISTS (
            SELECT FROM unnest(superusers) AS s (role) WHERE pg_has_role(b.role, s.role, 'MEMBER') IS NOT TRUE
        )
    );
END
$$;
