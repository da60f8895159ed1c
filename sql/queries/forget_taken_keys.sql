-- forget_taken_keys: delete the oldest keys that were taken for a time that is over; returns how
--   many there were.
-- $1 int8 most
-- odd: one that somebody takes anew just now is left alone.
WITH over AS MATERIALIZED (
    SELECT t.key FROM hybrid_runner.taken_keys AS t WHERE t.until <= clock_timestamp() ORDER BY t.until LIMIT $1 FOR UPDATE SKIP LOCKED
),
forgotten AS (
    DELETE FROM hybrid_runner.taken_keys AS t USING over AS o WHERE t.key = o.key RETURNING 1
)
SELECT count(*) FROM forgotten
