-- write_late_rows: write into these rows of an attached table what is true of their jobs now; says
-- for each what write_rows() says, and leaves out rows whose job somebody has locked.
-- Those that are late afterwards are due again: after half a second if somebody holds them, after
-- longer and longer pauses if Postgres refuses one alone, at once if it refused several together.
-- Of a job that the archive has forgotten, what it had become when its row was tried last is
-- written, without its result.
CREATE OR REPLACE FUNCTION hybrid_runner.write_late_rows(
    source integer, keys text[]
) RETURNS TABLE (row_key text, outcome text)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_column
DECLARE
    free text[];
    mine text[];
    known bigint[];
    job_ids bigint[];
    row_keys text[];
    states text[];
    were_queued boolean[];
    retries integer[];
    workers text[];
    started timestamptz[];
    finished timestamptz[];
    results text[];
    errors text[];
BEGIN
    -- Nothing here waits, neither for jobs nor for others who note that a row is late: so nobody
    -- who waits for this one can be waited for.
    free := ARRAY(
        SELECT l.row_key
        FROM hybrid_runner.late_rows AS l
        WHERE l.source = write_late_rows.source AND l.row_key = ANY (write_late_rows.keys)
        FOR NO KEY UPDATE OF l SKIP LOCKED
    );
    mine := ARRAY(
        SELECT DISTINCT k.key
        FROM unnest(write_late_rows.keys) AS k (key)
        WHERE k.key = ANY (free) OR NOT EXISTS (
            SELECT FROM hybrid_runner.late_rows AS l
            WHERE l.source = write_late_rows.source AND l.row_key = k.key
        )
    );
    known := ARRAY(
        SELECT l.job_id
        FROM hybrid_runner.late_rows AS l
        WHERE l.source = write_late_rows.source AND l.row_key = ANY (mine) AND l.job_id IS NOT NULL
    );
    WITH late AS MATERIALIZED (
        SELECT k.key, l.job_id, l.state, j.id AS live_id
        FROM unnest(mine) AS k (key)
        LEFT JOIN hybrid_runner.late_rows AS l ON l.source = write_late_rows.source AND l.row_key = k.key
        LEFT JOIN hybrid_runner.jobs AS j ON j.source = write_late_rows.source AND j.row_key = k.key
    ),
    own AS MATERIALIZED (
        SELECT j.id, j.row_key, j.state, j.attempt, j.worker_id, j.started_at, j.errors, j.history
        FROM hybrid_runner.jobs AS j
        WHERE j.source = write_late_rows.source AND j.row_key = ANY (mine)
        FOR NO KEY UPDATE OF j SKIP LOCKED
    ),
    ended AS MATERIALIZED (
        SELECT
            t.key, a.id, a.state, a.claim, a.attempt, a.worker_id, a.started_at, a.finished_at, a.result,
            a.errors
        FROM late AS t
        JOIN hybrid_runner.archived(known) AS a ON a.id = t.job_id
        WHERE t.live_id IS NULL
    ),
    present AS (
        SELECT
            coalesce(o.id, e.id, t.job_id, -row_number() OVER ()) AS job_id, t.key,
            CASE
                WHEN o.state = 'running' THEN 'running'
                WHEN t.state IN ('queued', 'snoozed', 'retried') AND o.id IS NOT NULL THEN t.state
                WHEN o.history -> -1 ->> 'what' = 'snooze' THEN 'snoozed'
                WHEN o.id IS NOT NULL THEN 'queued'
                WHEN e.id IS NOT NULL THEN e.state::text
                WHEN t.state IN ('completed', 'failed', 'cancelled') THEN t.state
                ELSE 'missing'
            END AS state,
            CASE
                WHEN o.state = 'running' THEN o.attempt - 1
                WHEN o.id IS NOT NULL THEN o.attempt
                ELSE e.attempt - CASE WHEN e.state = 'failed' OR e.claim IS NULL THEN 0 ELSE 1 END
            END AS retry,
            coalesce(o.worker_id, e.worker_id) AS worker, coalesce(o.started_at, e.started_at) AS started,
            e.finished_at AS finished, e.result::text AS result,
            CASE WHEN o.state IS DISTINCT FROM 'running' THEN coalesce(o.errors, e.errors)::text END AS error
        FROM late AS t
        LEFT JOIN own AS o ON o.row_key = t.key
        LEFT JOIN ended AS e ON e.key = t.key
        -- A job that somebody has locked is about to change.
        WHERE t.live_id IS NULL OR o.id IS NOT NULL
    )
    SELECT
        array_agg(p.job_id), array_agg(p.key), array_agg(p.state), array_agg(false),
        array_agg(p.retry), array_agg(p.worker), array_agg(p.started), array_agg(p.finished),
        array_agg(p.result), array_agg(p.error)
    INTO job_ids, row_keys, states, were_queued, retries, workers, started, finished, results, errors
    FROM present AS p;
    IF job_ids IS NULL THEN
        RETURN;
    END IF;

    RETURN QUERY
    SELECT k.key, w.outcome
    FROM hybrid_runner.write_rows(
        write_late_rows.source, job_ids, row_keys, states, were_queued, retries, workers, started,
        finished, results, errors, is_checked => true
    ) AS w
    JOIN unnest(job_ids, row_keys) AS k (job_id, key) ON k.job_id = w.job_id;

    UPDATE hybrid_runner.late_rows AS l SET next_try_at = clock_timestamp() + CASE
        WHEN l.is_refused THEN least(interval '5 minutes', interval '1 second' * 2 ^ least(l.tries, 9))
        WHEN l.why = 'somebody holds the row' THEN CASE
            WHEN l.since > clock_timestamp() - interval '1 minute' THEN interval '500 milliseconds'
            ELSE interval '1 second'
        END
        ELSE interval '0'
    END
    WHERE l.source = write_late_rows.source AND l.row_key = ANY (row_keys);
END
$$;
