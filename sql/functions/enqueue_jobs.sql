-- enqueue_jobs: for enqueue_many_keyed: store many jobs of which some have keys; says of each, by
-- its place, what became of it: as enqueue_job() says it of one after the other.
-- What is not stored at once because its key is held is looked up, or the error says who has it;
-- replace, follow, collect and unique_for go one by one. Keys are taken in their own order, so that
-- two such statements cannot wait for each other; a microsecond for each place makes the jobs due
-- in the order in which they were given.
CREATE OR REPLACE FUNCTION hybrid_runner.enqueue_jobs(
    kinds text[], payloads text[], queues text[], priorities integer[], run_ats timestamptz[],
    traceparents text[], max_attempts integer[], timeouts interval[], finish_bys timestamptz[],
    data text[], delays interval[], max_snoozes integer[], max_durations interval[],
    finish_withins interval[], start_bys timestamptz[], keys text[], on_conflict text,
    max_wait interval, unique_for interval, max_items integer
) RETURNS TABLE (place bigint, id bigint, outcome text)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
-- as enqueue_job() has them
SET lock_timeout = '5s' SET enable_seqscan = off
AS $$
#variable_conflict use_column
DECLARE
    moment timestamptz := clock_timestamp();
    trace text := nullif(current_setting('hybrid_runner.traceparent', true), '');
    left_over bigint[];
    left_keys text[];
    made_places bigint[];
    made_ids bigint[];
    taken record;
BEGIN
    IF on_conflict IS NULL OR on_conflict NOT IN ('exists', 'error') OR unique_for IS NOT NULL
        OR max_wait IS NOT NULL OR max_items IS NOT NULL
        OR array_position(queues, NULL) IS NOT NULL
        -- what one alone would be refused for in words of its own
        OR EXISTS (SELECT FROM unnest(priorities) AS p (value) WHERE p.value IS NULL OR p.value NOT BETWEEN 0 AND 9)
        OR EXISTS (SELECT FROM unnest(enqueue_jobs.max_attempts) AS m (value) WHERE m.value NOT BETWEEN 1 AND 1000)
        OR EXISTS (SELECT FROM unnest(enqueue_jobs.max_snoozes) AS m (value) WHERE m.value < 0)
        OR EXISTS (SELECT FROM unnest(keys) AS k (value) WHERE starts_with(k.value, '>'))
    THEN
        RETURN QUERY
        WITH n AS MATERIALIZED (
            SELECT given.*
            FROM ROWS FROM (
                unnest(kinds), unnest(payloads), unnest(queues), unnest(priorities), unnest(run_ats),
                unnest(traceparents), unnest(enqueue_jobs.max_attempts), unnest(timeouts), unnest(finish_bys),
                unnest(enqueue_jobs.data), unnest(delays), unnest(enqueue_jobs.max_snoozes), unnest(max_durations),
                unnest(finish_withins), unnest(start_bys), unnest(keys)
            ) WITH ORDINALITY AS given (
                kind, payload, queue, priority, run_at, traceparent, max_attempts, timeout,
                finish_by, data, delay, max_snoozes, max_duration, finish_within, start_by, key, place
            )
            ORDER BY given.key COLLATE "C", given.place
        )
        SELECT n.place, e.id, e.outcome
        FROM n
        CROSS JOIN LATERAL hybrid_runner.enqueue_job(
            n.kind, n.payload::jsonb, n.queue, n.key, n.priority,
            coalesce(n.run_at, moment + n.place::float8 * interval '1 microsecond'
                + coalesce(make_interval(secs => extract(epoch FROM n.delay)::float8), interval '0')),
            NULL, n.max_attempts, n.timeout, n.finish_by, n.data::jsonb, n.traceparent, on_conflict,
            n.max_snoozes, n.max_duration, n.finish_within, n.start_by, max_wait, unique_for, max_items
        ) AS e;
        RETURN;
    END IF;

    FOR tries IN 1..10 LOOP
        WITH n AS MATERIALIZED (
            SELECT given.*, nextval('hybrid_runner.jobs_id_seq') AS id
            FROM ROWS FROM (
                unnest(kinds), unnest(payloads), unnest(queues), unnest(priorities), unnest(run_ats),
                unnest(traceparents), unnest(enqueue_jobs.max_attempts), unnest(timeouts), unnest(finish_bys),
                unnest(enqueue_jobs.data), unnest(delays), unnest(enqueue_jobs.max_snoozes), unnest(max_durations),
                unnest(finish_withins), unnest(start_bys), unnest(keys)
            ) WITH ORDINALITY AS given (
                kind, payload, queue, priority, run_at, traceparent, max_attempts, timeout,
                finish_by, data, delay, max_snoozes, max_duration, finish_within, start_by, key, place
            )
            WHERE left_over IS NULL OR given.place = ANY (left_over)
        ),
        made AS (
            INSERT INTO hybrid_runner.jobs AS j (
                id, kind, payload, queue, key, priority, run_at, max_attempts, timeout, finish_by,
                data, traceparent, max_snoozes, max_duration, finish_within, start_by
            )
            SELECT
                n.id, n.kind, n.payload::jsonb, n.queue, n.key, n.priority,
                coalesce(n.run_at, moment + n.place::float8 * interval '1 microsecond'
                    + coalesce(make_interval(secs => extract(epoch FROM n.delay)::float8), interval '0')),
                n.max_attempts, n.timeout, n.finish_by, n.data::jsonb, coalesce(n.traceparent, trace),
                n.max_snoozes, n.max_duration, n.finish_within, n.start_by
            FROM n
            ORDER BY n.key COLLATE "C", n.place
            ON CONFLICT (key) WHERE key IS NOT NULL DO NOTHING
            RETURNING j.id
        )
        SELECT
            array_agg(n.place) FILTER (WHERE m.id IS NOT NULL), array_agg(n.id) FILTER (WHERE m.id IS NOT NULL),
            array_agg(n.place) FILTER (WHERE m.id IS NULL), array_agg(n.key) FILTER (WHERE m.id IS NULL)
        INTO made_places, made_ids, left_over, left_keys
        FROM n
        LEFT JOIN made AS m ON m.id = n.id;
        RETURN QUERY SELECT u.place, u.id, 'inserted' FROM unnest(made_places, made_ids) AS u (place, id);
        EXIT WHEN left_over IS NULL;

        SELECT array_agg(u.place), array_agg(j.id) INTO made_places, made_ids
        FROM unnest(left_over, left_keys) AS u (place, key)
        INNER JOIN hybrid_runner.jobs AS j ON j.key = u.key;
        IF on_conflict = 'error' AND made_ids IS NOT NULL THEN
            SELECT h.id, u.key INTO taken
            FROM unnest(left_over, left_keys) AS u (place, key)
            INNER JOIN unnest(made_places, made_ids) AS h (place, id) ON h.place = u.place
            ORDER BY u.key COLLATE "C", u.place
            LIMIT 1;
            RAISE EXCEPTION 'key % is held by live job %', quote_literal(taken.key), taken.id
                USING ERRCODE = 'unique_violation', CONSTRAINT = 'jobs_one_live_job_per_key';
        END IF;
        RETURN QUERY SELECT u.place, u.id, 'exists' FROM unnest(made_places, made_ids) AS u (place, id);
        -- Whose holder ended between the two statements: the key is free again.
        left_over := ARRAY(
            SELECT u.place FROM unnest(left_over) AS u (place)
            EXCEPT SELECT m.place FROM unnest(made_places) AS m (place)
        );
        EXIT WHEN cardinality(left_over) = 0;
        IF tries = 10 THEN
            RAISE EXCEPTION 'keys change hands too fast: try again' USING ERRCODE = 'serialization_failure';
        END IF;
    END LOOP;
END
$$;
