-- number_signals: write down for which jobs the signals are that have no number yet: those that are
--   stored by now; returns their ids.
-- $1 int8 most
-- odd: what this statement sees was committed before it read the sequence, so each job that was
--   stored when the signal was committed has a lower id.
-- odd: the jobs that wait are looked for by a later statement: one of them that begins to wait
--   meanwhile looks by itself, and does not see these numbers.
UPDATE hybrid_runner.signals AS s
SET newest_job = (
    SELECT CASE WHEN q.is_called THEN q.last_value ELSE 0 END
    FROM hybrid_runner.jobs_id_seq AS q
)
WHERE s.id = ANY (ARRAY(
    SELECT n.id FROM hybrid_runner.signals AS n
    WHERE n.newest_job = 9223372036854775807
    ORDER BY n.id
    LIMIT $1
    FOR NO KEY UPDATE SKIP LOCKED
))
RETURNING s.id
