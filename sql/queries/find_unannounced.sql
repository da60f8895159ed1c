-- find_unannounced: of jobs that a fallback poll found, how many were inserted as due; and
--   whether the queue's bell is open.
-- $1 text queue, $2 int8[] ids
-- odd: live or archived: they may have ended since. What was put back, retried or amended is due
--   later than it was made.
SELECT
    coalesce(
        (
            SELECT pg_relation_filenode(q.doorbell) IS NOT NULL AND pg_sequence_last_value(q.doorbell) = 0
            FROM hybrid_runner.queues AS q
            WHERE q.name = $1
        ),
        false
    ) AS is_open,
    (
        SELECT count(*) FROM hybrid_runner.all_jobs AS j
        WHERE j.id = ANY ($2) AND j.run_at <= j.created_at + interval '100 milliseconds'
    ) AS jobs
