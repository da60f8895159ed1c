-- write: write into rows of one attached table what became of their jobs; write_rows calls it.
-- What it says is in arrays, one place for each job: as rows it would be copied twice more.
-- The table's own triggers find names where the application does: its path is set as the update
-- begins, when all that is written here has been read with ours; so are the settings of its plans
-- and policies.
CREATE OR REPLACE FUNCTION hybrid_runner.<<prefix>>_write(
    job_ids bigint[], keys text[], states text[], were_queued boolean[], retries integer[],
    workers text[], started timestamptz[], finished timestamptz[], results text[], errors text[],
    unshown text[], is_checked boolean,
    OUT ids bigint[], OUT outcomes text[], OUT words text[], OUT seens text[]
)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET lock_timeout = '50ms'
SET datestyle FROM CURRENT SET intervalstyle = 'postgres' SET extra_float_digits = 1
-- Its statements have one good plan whatever the table holds: by the key.
SET plan_cache_mode = 'force_generic_plan' SET enable_seqscan = off
AS <<quote>>
#variable_conflict use_column
DECLARE
    held pg_catalog.text[];
    hides pg_catalog.text := pg_catalog.current_setting('row_security');
BEGIN
    -- Never waits for a row. What follows is a statement of its own, so that it sees what whoever
    -- held a row before has left.
    held := ARRAY(
        SELECT <<row_key new>>
        FROM <<relation>> AS new
        WHERE <<has_key new $2>>
        FOR NO KEY UPDATE OF new SKIP LOCKED
    );
    -- Nearly always all rows are free, and all are to be written: that takes one statement.
    IF NOT is_checked AND cardinality(held) = cardinality(keys) THEN
        WITH updated AS (
            UPDATE <<relation>> AS new SET
<<assignments>>
            FROM unnest($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11) AS a (
                job_id, row_key, state, was_queued, retry, worker, started, finished, result, error, unshown
            )
            -- Nothing to look up by, but to join by: all keys are looked up at once.
            WHERE <<has_key new $2>> AND (<<row_key new>>) || '' = a.row_key
                AND hybrid_runner.row_verdict(
                    a.state, <<shows_to new new.xmin::text>>, (<<condition new>>) IS TRUE, a.was_queued,
                    coalesce(a.unshown = new.xmin::text, false)) = 'write'
                AND (SELECT set_config('search_path', <<application_path>>, true)
                    || set_config('plan_cache_mode', 'auto', true)
                    || set_config('enable_seqscan', 'on', true)
                    || set_config('row_security', 'on', true)) IS NOT NULL
            -- A trigger of the table may have put back its word, or another one.
            RETURNING a.job_id, <<is_undone new>> AS is_undone, <<word new>> AS word, new.xmin::text AS seen
        )
        SELECT
            coalesce(array_agg(u.job_id), '{}'),
            coalesce(array_agg(CASE WHEN u.is_undone THEN 'undone' ELSE 'written' END), '{}'),
            array_agg(CASE WHEN u.is_undone THEN u.word END), array_agg(CASE WHEN u.is_undone THEN u.seen END)
        INTO ids, outcomes, words, seens
        FROM updated AS u;
        PERFORM pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', true),
            pg_catalog.set_config('plan_cache_mode', 'force_generic_plan', true),
            pg_catalog.set_config('enable_seqscan', 'off', true),
            pg_catalog.set_config('row_security', hides, true);
    END IF;

    IF ids IS NULL OR cardinality(ids) < cardinality(keys) THEN
        WITH asked AS MATERIALIZED (
            SELECT a.*
            FROM unnest($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11) AS a (
                job_id, row_key, state, was_queued, retry, worker, started, finished, result, error, unshown
            )
            WHERE (a.job_id = ANY (ids)) IS NOT TRUE
        ),
        found AS MATERIALIZED (
            SELECT
                <<row_key new>> AS row_key, <<word new>> AS word, new.xmin::text AS seen,
                (<<condition new>>) IS TRUE AS is_wanted
            FROM <<relation>> AS new
            WHERE <<has_key new $2>>
        ),
        judged AS MATERIALIZED (
            SELECT
                a.*, f.row_key IS NULL AS is_gone, f.word, f.seen, h.row_key IS NOT NULL AS is_held,
                CASE
                    WHEN $12 AND a.state IN ('completed', 'failed', 'cancelled', 'missing') AND EXISTS (
                        SELECT FROM hybrid_runner.<<prefix>>_jobs AS j WHERE j.row_key = a.row_key
                    ) THEN 'keep'
                    -- Its job was given an older version: what was changed since is for another.
                    WHEN $12 AND a.state = 'running' AND <<shows f.word>> <> 'running'
                        AND (a.unshown = f.seen) IS NOT TRUE THEN 'keep'
                    ELSE hybrid_runner.row_verdict(
                        a.state, <<shows_to f.word f.seen>>, f.is_wanted,
                        a.was_queued, coalesce(a.unshown = f.seen, false))
                END AS verdict
            FROM asked AS a
            LEFT JOIN found AS f ON f.row_key = a.row_key
            LEFT JOIN unnest(held) AS h (row_key) ON h.row_key = f.row_key
        ),
        updated AS (
            UPDATE <<relation>> AS new SET
<<assignments>>
            FROM judged AS a
            -- One condition, and not three: else the planner expects one row, and joins in loops.
            WHERE <<has_key new $2>>
                AND (<<row_key new>>) || '' = CASE WHEN a.is_held AND a.verdict = 'write' THEN a.row_key END
                AND (SELECT set_config('search_path', <<application_path>>, true)
                    || set_config('plan_cache_mode', 'auto', true)
                    || set_config('enable_seqscan', 'on', true)
                    || set_config('row_security', 'on', true)) IS NOT NULL
            RETURNING a.job_id, <<is_undone new>> AS is_undone, <<word new>> AS word, new.xmin::text AS seen
        ),
        again AS (
            INSERT INTO hybrid_runner.<<prefix>>_jobs (row_key, priority, run_at, payload)
            SELECT <<row_key new>>, <<priority new>>, <<run_at new>>, <<payload new>>
            FROM <<relation>> AS new
            JOIN judged AS a ON (<<row_key new>>) || '' = a.row_key
            WHERE <<has_key new $2>> AND a.is_held AND a.verdict = 'again'
            ON CONFLICT DO NOTHING
        )
        SELECT
            ids || array_agg(a.job_id),
            outcomes || array_agg(CASE
                WHEN a.is_gone THEN 'gone'
                WHEN a.verdict = 'unwanted' THEN 'unwanted'
                -- Its holder may just ask for it anew, and finds that its job is still there.
                WHEN NOT a.is_held AND (
                    a.verdict <> 'keep' OR a.state IN ('completed', 'failed', 'cancelled')
                ) THEN 'locked'
                WHEN a.verdict = 'write' AND NOT u.is_undone THEN 'written'
                WHEN a.verdict = 'write' AND a.state <> 'beat' THEN 'undone'
                WHEN a.verdict = 'again' THEN 'again'
                ELSE 'kept'
            END),
            words || array_agg(coalesce(u.word, a.word)),
            -- A word that no job has written is not what a job found.
            seens || array_agg(coalesce(u.seen, CASE WHEN <<shows_to a.word a.seen>> <> 'other' THEN a.seen END))
        INTO ids, outcomes, words, seens
        FROM judged AS a
        LEFT JOIN updated AS u ON u.job_id = a.job_id;
        PERFORM pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', true),
            pg_catalog.set_config('plan_cache_mode', 'force_generic_plan', true),
            pg_catalog.set_config('enable_seqscan', 'off', true),
            pg_catalog.set_config('row_security', hides, true);
    END IF;

    -- A trigger that comes after the update may have written over it: what such a row shows by now
    -- is no new want, and else its job would run for ever.
    IF 'running' = ANY ($3) AND EXISTS (
        SELECT FROM <<relation>> AS new WHERE <<has_key new $2>> AND (<<is_running new>>) IS NOT TRUE
    ) THEN
        SELECT
            array_agg(CASE WHEN r.row_key IS NULL THEN o.outcome ELSE 'undone' END ORDER BY o.place),
            array_agg(coalesce(r.word, o.word) ORDER BY o.place),
            array_agg(coalesce(r.seen, o.seen) ORDER BY o.place)
        INTO outcomes, words, seens
        FROM unnest(ids, outcomes, words, seens) WITH ORDINALITY AS o (id, outcome, word, seen, place)
        LEFT JOIN unnest($1, $2, $3) AS a (id, row_key, state)
            ON a.id = o.id AND a.state = 'running' AND o.outcome = 'written'
        LEFT JOIN (
            SELECT <<row_key new>> AS row_key, <<word new>> AS word, new.xmin::text AS seen
            FROM <<relation>> AS new
            WHERE <<has_key new $2>> AND (<<is_running new>>) IS NOT TRUE
        ) AS r ON r.row_key = a.row_key;
    END IF;
END
<<quote>>;
