-- beat_rows: write into rows of attached tables that their jobs still run; returns into how many.
-- $1 int8[] ids, $2 int8[] claims
-- odd: the CASE is as in show_claims.sql.
-- odd: only where the table has a column for it. Rows and jobs that somebody holds are left for the
--   next time.
WITH own AS MATERIALIZED (
    SELECT j.id, j.source, j.row_key, j.attempt, j.worker_id, j.started_at
    FROM hybrid_runner.jobs AS j
    WHERE j.id = ANY ($1) AND j.state = 'running'
        AND CASE WHEN (j.id, j.claim) IN (SELECT a.id, a.claim FROM unnest($1::int8[], $2::int8[]) AS a (id, claim)) THEN true END
        AND j.source IN (SELECT t.id FROM hybrid_runner.sources AS t WHERE t.definition #>> '{columns,heartbeat_at}' IS NOT NULL)
    FOR NO KEY UPDATE OF j SKIP LOCKED
)
SELECT count(*) FILTER (WHERE w.outcome = 'written')
FROM (
    SELECT
        o.source, array_agg(o.id) AS ids, array_agg(o.row_key) AS keys, array_agg('beat'::text) AS states,
        array_agg(false) AS were_queued, array_agg(o.attempt - 1) AS retries, array_agg(o.worker_id) AS workers,
        array_agg(o.started_at) AS started
    FROM own AS o
    GROUP BY o.source
) AS s
CROSS JOIN LATERAL hybrid_runner.write_rows(
    s.source, s.ids, s.keys, s.states, s.were_queued, s.retries, s.workers, s.started, NULL, NULL, NULL
) AS w
