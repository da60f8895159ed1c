-- see_new_jobs: the newest live jobs behind an id, of these queues and kinds (NULL: all), and the newest id there is.
-- $1 int8 behind, $2 text[] queues, $3 text[] kinds, $4 int8 most, $5 int8 deepest
-- odd: one row comes in any case, with the newest id; all else of it is NULL when there is nothing new.
-- odd: the last $5 ids at most are walked: entries of jobs that are gone stay in the index while vacuum is held back.
SELECT
    j.id, j.queue, j.kind, j.state, j.version, j.priority, j.attempt, j.max_attempts, j.run_at, j.worker_id,
    j.started_at, NULL::timestamptz AS finished_at, j.progress, j.cancel_requested_at, j.created_at,
    n.newest
FROM (SELECT coalesce(pg_sequence_last_value('hybrid_runner.jobs_id_seq'), 0) AS newest) AS n
LEFT JOIN LATERAL (
    SELECT
        e.id, e.queue, e.kind, e.state::text AS state, e.version, e.priority, e.attempt, e.max_attempts, e.run_at, e.worker_id,
        e.started_at, e.progress, e.cancel_requested_at, e.created_at
    FROM hybrid_runner.jobs AS e
    WHERE e.id > greatest($1, n.newest - $5)
        AND ($2::text[] IS NULL OR e.queue = ANY ($2)) AND ($3::text[] IS NULL OR e.kind = ANY ($3))
    ORDER BY e.id DESC
    LIMIT $4
) AS j ON true
