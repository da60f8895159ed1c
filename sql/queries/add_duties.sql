-- add_duties: duties of an application's own are given out from now on.
-- $1 text[] names, $2 interval[] everys
-- odd: in order, so that workers that start together do not wait for each other in a circle.
INSERT INTO hybrid_runner.duties AS d (name, every)
SELECT u.name, u.every FROM unnest($1::text[], $2::interval[]) AS u (name, every) ORDER BY u.name
ON CONFLICT (name) DO UPDATE SET every = excluded.every WHERE d.every <> excluded.every
