-- answer_callback: store the signal that somebody sends to a job by its callback; returns sent,
--   again (it was sent before, which changes nothing) or unknown (there is no such live job).
-- $1 int8 job_id, $2 text key, $3 jsonb payload
-- odd: a signal that the job was given is remembered for longer than the signal itself.
SELECT
    CASE
        WHEN NOT EXISTS (SELECT FROM hybrid_runner.jobs AS j WHERE j.id = $1) THEN 'unknown'
        WHEN EXISTS (SELECT FROM hybrid_runner.waits AS w WHERE w.job_id = $1 AND w.key = $2 AND w.signal_id IS NOT NULL)
            THEN 'again'
        WHEN hybrid_runner.signal($2, $3, once => true) IS NULL THEN 'again'
        ELSE 'sent'
    END AS said
