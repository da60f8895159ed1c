-- cancel_jobs_without_rows: cancel live jobs of an attached table whose row is gone, of so many
--   behind a key; the last key that was looked at, NULL: all were, and how many it cancelled.
-- $1 int4 source, $2 text behind, $3 int4 most
SELECT c.last_key, c.cancelled FROM hybrid_runner.cancel_jobs_without_rows($1, $2, $3) AS c
