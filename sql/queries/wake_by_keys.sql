-- wake_by_keys: make jobs due that wait for one of these keys and whose signal is there; returns
--   their ids.
-- $1 text[] keys, $2 int8 most
-- odd: jobs that are due already, or were given all there is, are left out here, too: they would be
--   found again by each call, and others by none.
SELECT w.id
FROM hybrid_runner.wake_waiting(ARRAY(
    SELECT j.id
    FROM hybrid_runner.jobs AS j
    WHERE j.waits_for = ANY ($1) AND j.waits_for IS NOT NULL AND j.state = 'queued' AND j.run_at > clock_timestamp()
        AND (
            SELECT true FROM hybrid_runner.signals AS s
            WHERE s.key = j.waits_for AND s.newest_job >= j.id AND s.newest_job < 9223372036854775807
                AND (SELECT true FROM hybrid_runner.waits AS b WHERE b.job_id = j.id AND b.signal_id = s.id LIMIT 1) IS NULL
            LIMIT 1
        )
        AND (
            SELECT true FROM hybrid_runner.waits AS b
            WHERE b.job_id = j.id AND b.wake_of = j.snoozes AND (b.run = j.began_at OR b.run IS NULL)
            LIMIT 1
        ) IS NULL
    LIMIT $2
)) AS w (id)
