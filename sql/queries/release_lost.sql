-- release_lost: put back, uncharged, what a claim took whose answer never arrived; returns their
--   ids, and which could be put back.
-- $1 text queue, $2 text worker_id, $3 int8[] known, $4 int8[] claims,
-- $5 int8[] only
-- odd: id and claim: a crash may have undone the claim under which a job runs here, and a lost
--   one taken the same job again.
-- odd: $5 are the only jobs that are put back; NULL: all.
-- odd: only right while this worker has no claim of this queue on its way; it walks the table,
--   and runs after failures alone.
-- odd: a row that somebody holds is for the next time: claims must not wait for it, nor for an
--   attached table: its rows are written later.
WITH lost AS MATERIALIZED (
    SELECT j.id
    FROM hybrid_runner.jobs AS j
    WHERE j.queue = $1 AND j.worker_id = $2 AND j.state = 'running' AND ($5::int8[] IS NULL OR j.id = ANY ($5))
        AND NOT EXISTS (SELECT FROM unnest($3::int8[], $4::int8[]) AS k (id, claim) WHERE k.id = j.id AND k.claim = j.claim)
),
free AS MATERIALIZED (
    SELECT j.id FROM hybrid_runner.jobs AS j WHERE j.id IN (SELECT l.id FROM lost AS l) FOR UPDATE SKIP LOCKED
),
released AS (
    UPDATE hybrid_runner.jobs AS j SET
        state = 'queued',
        run_at = clock_timestamp(), -- never behind a frontier
        attempt = j.attempt - 1,
        began_at = coalesce(j.began_at, j.started_at),
        claim = NULL,
        worker_id = NULL,
        started_at = NULL,
        version = j.version + 1
    WHERE j.id IN (SELECT f.id FROM free AS f) AND j.worker_id = $2 AND j.state = 'running'
    RETURNING j.id, j.source, j.row_key, j.attempt, 'queued' AS became, NULL::text AS errors
),
rung AS (
    SELECT hybrid_runner.ring($1, now()) FROM released AS r LIMIT 1
),
written AS MATERIALIZED (
    SELECT w.job_id
    FROM (
        SELECT
            r.source, array_agg(r.id) AS ids, array_agg(r.row_key) AS keys, array_agg(r.became) AS states,
            array_agg(false) AS were_queued, array_agg(r.attempt::int4) AS retries,
            array_agg(r.errors) AS errors
        FROM released AS r
        WHERE r.source IS NOT NULL
        GROUP BY r.source
    ) AS s
    CROSS JOIN LATERAL hybrid_runner.write_rows(
        s.source, s.ids, s.keys, s.states, s.were_queued, s.retries, NULL, NULL, NULL, NULL, s.errors, put_off => true
    ) AS w
)
SELECT l.id, EXISTS (SELECT FROM released AS r WHERE r.id = l.id) AS released
FROM lost AS l
WHERE (SELECT count(*) FROM rung) IS NOT NULL AND (SELECT count(*) FROM written) IS NOT NULL
