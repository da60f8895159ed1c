-- find_monitors: whether monitors are installed by a role that may be trusted as much as the owner
--   of hybrid_runner; no row: there is no such schema.
-- odd: asked of the catalogue alone. In a schema of a stranger his code would run with the rights
--   of whoever reads or migrates.
SELECT (n.nspowner = r.nspowner OR o.rolsuper) AND c.relowner = n.nspowner AND c.relkind = 'r' AND NOT c.relrowsecurity AS is_ours
FROM pg_class AS c
JOIN pg_namespace AS n ON n.oid = c.relnamespace
JOIN pg_roles AS o ON o.oid = n.nspowner
CROSS JOIN pg_namespace AS r
WHERE c.relname = 'migrations' AND n.nspname = 'hybrid_monitors' AND r.nspname = 'hybrid_runner'
