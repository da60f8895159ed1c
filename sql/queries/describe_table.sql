-- describe_table: the table itself, who owns it, and what whoever asks may do with it.
-- $1 int8 oid
-- odd: from 16 on a member may have been denied SET ROLE; before there is no such word. Who is
--   outranked, outranks_owner() says, too.
SELECT
    c.oid::int8 AS oid, n.nspname::text AS schema_name, c.relname::text AS name,
    c.oid::regclass::text AS full_name, c.relkind::text AS kind,
    c.relpersistence::text AS persistence, c.relispartition AS is_partition,
    c.relkind <> 'p' AND EXISTS (SELECT FROM pg_inherits AS i WHERE i.inhparent = c.oid)
        AS is_parent,
    EXISTS (SELECT FROM pg_inherits AS i WHERE i.inhrelid = c.oid) AS is_child,
    greatest(c.reltuples, (
        SELECT sum(l.reltuples) FILTER (WHERE l.reltuples > 0)
        FROM pg_partition_tree(c.oid) AS p JOIN pg_class AS l ON l.oid = p.relid
        WHERE p.isleaf
    ))::float8 AS rows,
    EXISTS (
        SELECT FROM pg_rewrite AS w
        WHERE w.ev_class = c.oid AND w.ev_type IN ('2', '3', '4') AND w.ev_enabled <> 'D'
    ) AS has_rules,
    o.rolname::text AS owner,
    o.rolsuper AS owner_is_superuser, o.rolsuper OR o.oid = r.nspowner AS owner_is_trusted,
    pg_has_role(c.relowner, m.word) AS may_act_as_owner,
    has_schema_privilege(c.relowner, c.relnamespace, 'USAGE') AS owner_reaches_it,
    pg_get_userbyid(r.nspowner)::text AS runner_owner,
    pg_has_role(r.nspowner, m.word) AS may_act_as_runner_owner,
    current_user::text AS role, below.asker AS outranked_by_asker, below.runner AS outranked_by_runner,
    (
        SELECT substring(u.setting FROM '^search_path=(.*)$')
        FROM pg_db_role_setting AS s
        CROSS JOIN unnest(s.setconfig) AS u (setting)
        WHERE s.setrole IN (0, c.relowner) AND starts_with(u.setting, 'search_path=')
            AND s.setdatabase IN (
                0, (SELECT d.oid FROM pg_database AS d WHERE d.datname = current_database()))
        ORDER BY s.setrole = 0, s.setdatabase = 0
        LIMIT 1
    ) AS search_path,
    NOT c.relrowsecurity OR NOT c.relforcerowsecurity OR o.rolsuper OR o.rolbypassrls OR (
        p.reads AND p.writes AND NOT p.restricts
    ) AS owner_sees_all
FROM pg_class AS c
JOIN pg_namespace AS n ON n.oid = c.relnamespace
JOIN pg_roles AS o ON o.oid = c.relowner
JOIN pg_namespace AS r ON r.nspname = 'hybrid_runner'
CROSS JOIN (
    SELECT CASE
        WHEN current_setting('server_version_num')::integer >= 160000 THEN 'SET' ELSE 'MEMBER'
    END AS word
) AS m
CROSS JOIN LATERAL (
    SELECT
        coalesce(bool_or(s.is_all AND p.polpermissive AND p.polcmd IN ('*', 'r')), false) AS reads,
        coalesce(bool_or(s.is_all AND p.polpermissive AND p.polcmd IN ('*', 'w')), false) AS writes,
        coalesce(bool_or(
            NOT s.is_all AND NOT p.polpermissive AND p.polcmd IN ('*', 'r', 'w')
        ), false) AS restricts
    FROM pg_policy AS p
    CROSS JOIN LATERAL (
        SELECT pg_get_expr(p.polqual, p.polrelid) = 'true'
            AND coalesce(pg_get_expr(p.polwithcheck, p.polrelid), 'true') = 'true' AS is_all
    ) AS s
    WHERE p.polrelid = c.oid AND EXISTS (
        SELECT FROM unnest(p.polroles) AS u (role)
        WHERE u.role = 0 OR pg_has_role(c.relowner, u.role, 'USAGE')
    )
) AS p
CROSS JOIN LATERAL (
    WITH RECURSIVE touched (oid) AS (
        SELECT c.oid
        UNION
        SELECT i.inhrelid FROM touched AS t JOIN pg_inherits AS i ON i.inhparent = t.oid
    ),
    behind (role) AS (
        SELECT b.relowner FROM touched AS t JOIN pg_class AS b ON b.oid = t.oid
        UNION
        SELECT CASE WHEN n.nspowner = 'pg_database_owner'::regrole THEN d.datdba ELSE n.nspowner END
        FROM pg_database AS d
        WHERE d.datname = current_database()
    )
    SELECT
        min(pg_get_userbyid(b.role)::text) FILTER (
            WHERE pg_has_role(session_user, s.oid, 'MEMBER') OR pg_has_role(l.usesysid, s.oid, 'MEMBER')
        ) AS asker,
        min(pg_get_userbyid(b.role)::text) FILTER (
            WHERE pg_has_role(r.nspowner, s.oid, 'MEMBER')
        ) AS runner
    FROM pg_roles AS s
    JOIN behind AS b ON NOT pg_has_role(b.role, s.oid, 'MEMBER')
    CROSS JOIN pg_stat_get_activity(pg_backend_pid()) AS l
    WHERE s.rolsuper
) AS below
WHERE c.oid = $1::int8::oid
