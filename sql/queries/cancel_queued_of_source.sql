-- cancel_queued_of_source: end queued jobs of a source that is detached; how many.
-- $1 int4 source, $2 text reason, $3 int4 most
-- odd: rows are not shown an end: those that wait keep the queued word, those that snooze are given
--   it again. While somebody holds such a row, its job is left for the next time.
WITH taken AS MATERIALIZED (
    SELECT q.id, q.row_key, q.attempt FROM hybrid_runner.jobs AS q
    WHERE q.source = $1 AND q.state = 'queued'
    LIMIT $3::int4
    FOR UPDATE OF q SKIP LOCKED
),
put_back AS MATERIALIZED (
    SELECT w.job_id, w.outcome
    FROM (
        SELECT
            array_agg(t.id) AS ids, array_agg(t.row_key) AS keys, array_agg('queued'::text) AS states,
            array_agg(true) AS were_queued, array_agg(greatest(t.attempt - 1, 0)::int4) AS retries, array_agg(NULL::text) AS no_text,
            array_agg(NULL::timestamptz) AS never
        FROM taken AS t
        HAVING count(*) > 0
    ) AS s
    CROSS JOIN LATERAL hybrid_runner.write_rows(
        $1, s.ids, s.keys, s.states, s.were_queued, s.retries, s.no_text, s.never, s.never, s.no_text, s.no_text
    ) AS w
),
ending AS MATERIALIZED (
    SELECT t.id, t.attempt FROM taken AS t
    WHERE t.id NOT IN (SELECT p.job_id FROM put_back AS p WHERE p.outcome = 'locked')
),
-- No worker was there: one of them reports it at its next heartbeat.
noted AS (
    INSERT INTO hybrid_runner.unreported_ends (id) SELECT t.id FROM ending AS t
    ON CONFLICT ON CONSTRAINT unreported_ends_pkey DO UPDATE SET ended_at = clock_timestamp(), taken_at = NULL
)
SELECT count(*)::int4 AS ended
FROM (
    SELECT
        array_agg(t.id) AS ids, array_agg('cancelled'::text) AS states,
        array_agg(jsonb_build_object('at', clock_timestamp(), 'attempt', t.attempt, 'type', 'Cancel', 'message', $2::text)::text) AS errors
    FROM ending AS t
    HAVING count(*) > 0
) AS s
CROSS JOIN LATERAL hybrid_runner.end_jobs(
    s.ids, NULL, s.states, ARRAY[NULL::text], s.errors, cancelled_at => clock_timestamp(), attached => false
) AS e (id)
