-- find_new_jobs: ids of the live jobs behind an id, of these queues and kinds (NULL: all), and
--   the newest id there is.
-- $1 int8 behind, $2 text[] queues, $3 text[] kinds, $4 int8 deepest
-- odd: the last $4 ids at most are walked: entries of jobs that are gone stay in the index while
--   vacuum is held back.
SELECT
    n.newest,
    ARRAY(
        SELECT e.id
        FROM hybrid_runner.jobs AS e
        WHERE e.id > greatest($1, n.newest - $4)
            AND ($2::text[] IS NULL OR e.queue = ANY ($2)) AND ($3::text[] IS NULL OR e.kind = ANY ($3))
        ORDER BY e.id
    ) AS wanted
FROM (SELECT coalesce(pg_sequence_last_value('hybrid_runner.jobs_id_seq'), 0) AS newest) AS n
