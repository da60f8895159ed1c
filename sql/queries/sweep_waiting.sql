-- sweep_waiting: go on through all waiting jobs, so many at a time; returns where it came to, and
--   those whose signal is there.
-- $1 text after_key, $2 int8 after_id, $3 int8 most
-- odd: no row when no waiting job was left behind $1 and $2.
-- odd: it changes nothing: a statement that woke so many would have locks on them for long.
WITH looked_at AS MATERIALIZED (
    SELECT j.id, j.waits_for, j.snoozes, j.began_at, j.run_at
    FROM hybrid_runner.jobs AS j
    WHERE j.waits_for IS NOT NULL AND j.state = 'queued' AND (j.waits_for, j.id) > ($1, $2)
    ORDER BY j.waits_for, j.id
    LIMIT $3
)
SELECT l.waits_for AS key, l.id, ARRAY(
    SELECT j.id
    FROM looked_at AS j
    -- as wake_by_keys.sql has it
    WHERE j.run_at > clock_timestamp()
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
) AS open
FROM looked_at AS l
ORDER BY l.waits_for DESC, l.id DESC
LIMIT 1
