-- show_claims: write into rows of attached tables that their jobs run now; returns what was done
--   with each. A job that is not this claim's any more is left out.
-- $1 int8[] ids, $2 int8[] claims
-- odd: the jobs are locked, so that nobody puts one back, or ends it, before its row is written.
--   One that somebody else holds is for the next call ('held').
-- odd: one that is being cancelled is not shown: its row may be wanted again by now, and is for
--   another job then.
-- odd: a CASE is looked up in a hash, whatever the planner believes; a join might be made in loops.
WITH own AS MATERIALIZED (
    SELECT j.id, j.source, j.row_key, j.attempt, j.worker_id, j.started_at, num_nulls(j.cancel_requested_at) = 0 AS is_cancelled
    FROM hybrid_runner.jobs AS j
    WHERE j.id = ANY ($1) AND j.state = 'running' AND j.source IS NOT NULL
        AND CASE WHEN (j.id, j.claim) IN (SELECT a.id, a.claim FROM unnest($1::int8[], $2::int8[]) AS a (id, claim)) THEN true END
    FOR NO KEY UPDATE OF j SKIP LOCKED
),
held AS (
    SELECT j.id
    FROM hybrid_runner.jobs AS j
    JOIN unnest($1::int8[], $2::int8[]) AS a (id, claim) ON a.id = j.id AND a.claim = j.claim
    WHERE (SELECT count(*) FROM own) < cardinality($1)
        AND j.id = ANY ($1) AND j.state = 'running' AND j.source IS NOT NULL
        AND NOT EXISTS (SELECT FROM own AS o WHERE o.id = j.id)
)
SELECT w.job_id, w.outcome, w.word, coalesce(t.relation_name, 'source ' || s.source) AS table_name
FROM (
    SELECT
        o.source, array_agg(o.id) AS ids, array_agg(o.row_key) AS keys, array_agg('running'::text) AS states,
        array_agg(false) AS were_queued, array_agg(o.attempt - 1) AS retries, array_agg(o.worker_id) AS workers,
        array_agg(o.started_at) AS started
    FROM own AS o
    WHERE NOT o.is_cancelled
    GROUP BY o.source
) AS s
LEFT JOIN hybrid_runner.sources AS t ON t.id = s.source
CROSS JOIN LATERAL hybrid_runner.write_rows(
    s.source, s.ids, s.keys, s.states, s.were_queued, s.retries, s.workers, s.started, NULL, NULL, NULL
) AS w
UNION ALL
SELECT h.id, 'held', NULL, '' FROM held AS h
UNION ALL
SELECT o.id, 'cancelled', NULL, '' FROM own AS o WHERE o.is_cancelled
