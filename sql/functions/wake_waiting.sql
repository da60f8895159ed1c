-- wake_waiting: make those of these jobs due that wait for a signal which is there and which they
-- were not given; returns the ids of those that were woken.
-- Nothing is taken here: the attempt that begins does that, and finds the signal by itself. A job
-- that somebody else changes or holds at this moment is left alone: it looks again when it waits
-- again, or is found by sweep_waiting.
CREATE OR REPLACE FUNCTION hybrid_runner.wake_waiting(ids bigint[]) RETURNS SETOF bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
-- To plan it takes ten times as long as to run it, and one index fits each part, for any table.
SET plan_cache_mode = 'force_generic_plan' SET enable_seqscan = off SET enable_hashjoin = off
SET enable_mergejoin = off SET jit = off
AS $$
BEGIN
    RETURN QUERY
    WITH open AS MATERIALIZED (
        SELECT j.id, j.version, j.queue
        FROM hybrid_runner.jobs AS j
        WHERE j.id = ANY (wake_waiting.ids) AND j.state = 'queued' AND j.waits_for IS NOT NULL
            AND j.run_at > clock_timestamp()
            AND EXISTS (
                SELECT FROM hybrid_runner.signals AS s
                -- One without a number may not be for this job in the end, and the attempt would
                -- find nothing: a time-out.
                WHERE s.key = j.waits_for AND s.newest_job >= j.id AND s.newest_job < 9223372036854775807 AND (
                    -- as take_signals.sql has it
                    SELECT true FROM hybrid_runner.waits AS w
                    WHERE w.job_id = j.id AND w.signal_id = s.id
                    LIMIT 1
                ) IS NULL
            )
            -- It was given its signal, or its time-out, and waits for its next attempt.
            AND NOT EXISTS (
                SELECT FROM hybrid_runner.waits AS w
                WHERE w.job_id = j.id AND w.wake_of = j.snoozes
                    AND (w.run = j.began_at OR w.run IS NULL)
            )
    ),
    free AS MATERIALIZED (
        SELECT j.id
        FROM hybrid_runner.jobs AS j
        JOIN open AS o ON o.id = j.id AND o.version = j.version
        WHERE j.id = ANY (wake_waiting.ids)
        FOR NO KEY UPDATE OF j SKIP LOCKED
    ),
    woken AS (
        UPDATE hybrid_runner.jobs AS j SET run_at = clock_timestamp(), version = j.version + 1
        WHERE j.id = ANY (ARRAY(SELECT f.id FROM free AS f))
        RETURNING j.id, j.queue, j.kind
    ),
    -- Also for one that another has woken meanwhile: this statement may have had a lock on it
    -- when a worker looked, which did not see it then.
    told AS (
        SELECT hybrid_runner.ring(o.queue, now()) FROM (SELECT DISTINCT n.queue FROM open AS n) AS o
    ),
    published AS (
        SELECT hybrid_runner.publish(w.queue, w.kind, w.id) FROM woken AS w
        WHERE hybrid_runner.readers_left_ms() > 0
    )
    SELECT w.id FROM woken AS w
    WHERE (SELECT count(*) FROM told) IS NOT NULL AND (SELECT count(*) FROM published) IS NOT NULL;
END
$$;
