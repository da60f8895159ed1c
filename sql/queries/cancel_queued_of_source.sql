-- cancel_queued_of_source: end queued jobs of a source that is detached; how many.
-- $1 int4 source, $2 text reason, $3 int4 most
-- odd: no row is written here: one that waits keeps the queued word, one that snoozes or is late
--   becomes late without a job, so that a worker gives it that word again.
WITH taken AS MATERIALIZED (
    SELECT q.id, q.row_key, q.attempt, q.history FROM hybrid_runner.jobs AS q
    WHERE q.source = $1 AND q.state = 'queued'
    LIMIT $3::int4
    FOR UPDATE OF q SKIP LOCKED
),
late AS (
    INSERT INTO hybrid_runner.late_rows AS l (source, row_key, state, why)
    SELECT $1, t.row_key, 'missing', 'its job was cancelled, since the table is being detached' FROM taken AS t
    WHERE t.history -> -1 ->> 'what' = 'snooze' OR EXISTS (
        SELECT FROM hybrid_runner.late_rows AS r WHERE r.source = $1 AND r.row_key = t.row_key
    )
    ORDER BY t.row_key COLLATE "C"
    ON CONFLICT ON CONSTRAINT late_rows_pkey DO UPDATE SET job_id = NULL, state = excluded.state
),
-- No worker was there: one of them reports it at its next heartbeat.
noted AS (
    INSERT INTO hybrid_runner.unreported_ends (id) SELECT t.id FROM taken AS t
    ON CONFLICT ON CONSTRAINT unreported_ends_pkey DO UPDATE SET ended_at = clock_timestamp(), taken_at = NULL
)
SELECT count(*)::int4 AS ended
FROM (
    SELECT
        array_agg(t.id) AS ids, array_agg('cancelled'::text) AS states,
        array_agg(jsonb_build_object('at', clock_timestamp(), 'attempt', t.attempt, 'type', 'Cancel', 'message', $2::text)::text) AS errors
    FROM taken AS t
    HAVING count(*) > 0
) AS s
CROSS JOIN LATERAL hybrid_runner.end_jobs(
    s.ids, NULL, s.states, ARRAY[NULL::text], s.errors, cancelled_at => clock_timestamp(), attached => false
) AS e (id)
