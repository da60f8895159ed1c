-- end_jobs: move ended jobs to the archive, and store the jobs that follow them; returns the ids
-- moved. Every job that ends comes this way: those that workers finish, rescue or find expired by
-- finish_jobs.sql and finish_followed_jobs.sql, all others by cancel(). What is to happen whenever
-- a job ends belongs here.
-- A tick of its schedule that waits for the end of a job has its turn (free_tick).
-- A claim that is not the job's own any more moves nothing; a claim that is NULL stands for whoever
-- has a lock on the row.
-- States that are NULL are all completed, results that are NULL all JSON null, errors that are NULL
-- all none; traceparents that are NULL are those of the jobs.
-- on_ends are what a worker knows of these kinds, in the same order: its word counts before what
-- stands in the table of kinds, where one with older code may have written none.
-- attached: whether some of them are jobs of attached tables, whose rows are then written as well;
-- NULL: the caller does not know. by_row: their rows asked for it, so a row that is wanted again
-- by now is to have a new job. put_off: rows are not waited for, and written later.
-- A key that is free by that is passed on to the job that waits for it: see let_go().
-- What follows is what each kind has under on_end, and follow_ups: objects as store_follow_ups()
-- takes them, each with the claim of the job that it follows. Without either, this is one statement
-- more than moving; kinds are those of the jobs, or NULL, so that clean-ups of others cost nothing.
-- PL/pgSQL, because a function in SQL is planned from its text at every call before PostgreSQL 18.
CREATE OR REPLACE FUNCTION hybrid_runner.end_jobs(
    ids bigint[], claims bigint[], states text[], results text[], errors text[],
    cancelled_at timestamptz DEFAULT NULL, traceparents text[] DEFAULT NULL,
    follow_ups text[] DEFAULT NULL, kinds text[] DEFAULT NULL, on_ends text[] DEFAULT NULL,
    attached boolean DEFAULT NULL, by_row boolean DEFAULT false, put_off boolean DEFAULT false
) RETURNS SETOF bigint
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    following jsonb[];
    ending integer;
    has_rows boolean := coalesce(
        end_jobs.attached, EXISTS (SELECT FROM hybrid_runner.sources));
BEGIN
    IF end_jobs.follow_ups IS NULL AND end_jobs.on_ends IS NULL AND NOT EXISTS (
        SELECT FROM hybrid_runner.kinds AS k
        WHERE k.on_end IS NOT NULL AND (end_jobs.kinds IS NULL OR k.name = ANY (end_jobs.kinds))
    ) THEN
        IF NOT has_rows THEN
            RETURN QUERY
            INSERT INTO hybrid_runner.archive AS a
            SELECT t.*
            FROM hybrid_runner.take_ended(ids, claims, states, results, errors, cancelled_at) AS t
            RETURNING CASE WHEN a.key IS NULL AND a.schedule IS NULL THEN a.id ELSE hybrid_runner.let_go(a.id, a.key, a.schedule) END;
            RETURN;
        END IF;
        RETURN QUERY
        WITH gone AS MATERIALIZED (
            SELECT t.*
            FROM hybrid_runner.take_ended(ids, claims, states, results, errors, cancelled_at) AS t
        ),
        written AS MATERIALIZED (
            SELECT w.job_id
            FROM (
                SELECT
                    g.source, array_agg(g.id) AS ids, array_agg(g.row_key) AS keys,
                    array_agg(g.state::text) AS states, array_agg(g.claim IS NULL AND NOT by_row) AS were_queued,
                    array_agg(g.attempt - CASE WHEN g.state = 'failed' OR g.claim IS NULL THEN 0 ELSE 1 END) AS retries,
                    array_agg(g.worker_id) AS workers, array_agg(g.started_at) AS started,
                    array_agg(g.finished_at) AS finished, array_agg(g.result::text) AS results,
                    array_agg(g.errors::text) AS errors
                FROM gone AS g
                WHERE g.source IS NOT NULL
                GROUP BY g.source
            ) AS s
            CROSS JOIN LATERAL hybrid_runner.write_rows(
                s.source, s.ids, s.keys, s.states, s.were_queued, s.retries, s.workers, s.started,
                s.finished, s.results, s.errors, put_off => end_jobs.put_off
            ) AS w
        )
        INSERT INTO hybrid_runner.archive AS a
        SELECT g.*
        FROM gone AS g
        WHERE (SELECT count(*) FROM written) IS NOT NULL
        RETURNING CASE WHEN a.key IS NULL AND a.schedule IS NULL THEN a.id ELSE hybrid_runner.let_go(a.id, a.key, a.schedule) END;
        RETURN;
    END IF;

    following := ARRAY(SELECT f.job::jsonb FROM unnest(end_jobs.follow_ups) AS f (job));
    -- What clean-ups are given is in memory all at once: some 200 MiB at most of 50 large jobs.
    FOR place IN 1..cardinality(end_jobs.ids) BY 50 LOOP
        ending := place + 49;
        RETURN QUERY
        WITH gone AS MATERIALIZED (
            SELECT t.*
            FROM hybrid_runner.take_ended(
                ids[place:ending], claims[place:ending], states[place:ending], results[place:ending],
                errors[place:ending], cancelled_at
            ) AS t
        ),
        made AS MATERIALIZED (
            SELECT s.follows, array_agg(s.id ORDER BY s.id) AS ids
            FROM hybrid_runner.store_follow_ups(
                ARRAY(
                    SELECT f.job
                    FROM unnest(following) WITH ORDINALITY AS f (job, place)
                    JOIN gone AS g ON g.id = (f.job ->> 'follows')::bigint
                        AND g.claim = (f.job ->> 'claim')::bigint
                    ORDER BY f.place
                ) || ARRAY(
                    SELECT jsonb_build_object(
                        'follows', g.id, 'is_clean_up', true, 'kind', clean_up.kind,
                        'queue', coalesce(its_own.queue, g.queue), 'key', 'ended:' || g.id,
                        'traceparent', coalesce(
                            end_jobs.traceparents[array_position(end_jobs.ids, g.id)], g.traceparent),
                        'payload', hybrid_runner.ended_payload(
                            g.id, g.kind, g.key, g.state::text, g.payload, g.data, g.result, g.errors))
                    FROM gone AS g
                    LEFT JOIN hybrid_runner.kinds AS k ON k.name = g.kind
                    CROSS JOIN LATERAL (SELECT coalesce(
                        end_jobs.on_ends[array_position(end_jobs.kinds, g.kind)], k.on_end
                    )) AS clean_up (kind)
                    LEFT JOIN hybrid_runner.kinds AS its_own ON its_own.name = clean_up.kind
                    WHERE clean_up.kind IS NOT NULL
                )
            ) AS s
            GROUP BY s.follows
        ),
        written AS MATERIALIZED (
            SELECT w.job_id
            FROM (
                SELECT
                    g.source, array_agg(g.id) AS ids, array_agg(g.row_key) AS keys,
                    array_agg(g.state::text) AS states, array_agg(g.claim IS NULL AND NOT by_row) AS were_queued,
                    array_agg(g.attempt - CASE WHEN g.state = 'failed' OR g.claim IS NULL THEN 0 ELSE 1 END) AS retries,
                    array_agg(g.worker_id) AS workers, array_agg(g.started_at) AS started,
                    array_agg(g.finished_at) AS finished, array_agg(g.result::text) AS results,
                    array_agg(g.errors::text) AS errors
                FROM gone AS g
                WHERE has_rows AND g.source IS NOT NULL
                GROUP BY g.source
            ) AS s
            CROSS JOIN LATERAL hybrid_runner.write_rows(
                s.source, s.ids, s.keys, s.states, s.were_queued, s.retries, s.workers, s.started,
                s.finished, s.results, s.errors, put_off => end_jobs.put_off
            ) AS w
        )
        INSERT INTO hybrid_runner.archive AS a
        SELECT
            g.id, g.queue, g.kind, g.priority, g.payload, g.data, g.key, g.run_at, g.max_attempts,
            g.timeout, g.finish_by, g.start_by, g.max_snoozes, g.max_duration, g.finish_within, g.traceparent,
            g.enqueued_by, g.source, g.row_key, g.schedule, g.tick, g.state, g.attempt, g.snoozes, g.began_at, g.waits_for, g.claim, g.worker_id,
            g.started_at, g.progress, g.errors, g.history, g.version, g.cancel_requested_at,
            g.created_at, g.finished_at, g.result, s.ids
        FROM gone AS g
        LEFT JOIN made AS s ON s.follows = g.id
        WHERE NOT has_rows OR (SELECT count(*) FROM written) IS NOT NULL
        RETURNING CASE WHEN a.key IS NULL AND a.schedule IS NULL THEN a.id ELSE hybrid_runner.let_go(a.id, a.key, a.schedule) END;
    END LOOP;
END
$$;
