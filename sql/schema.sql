-- schema: what all migrations make together, as pg_dump shows it. Written by `make schema`; never edited.

CREATE SCHEMA hybrid_runner;

CREATE TYPE hybrid_runner.job_state AS ENUM (
    'queued',
    'running',
    'completed',
    'failed',
    'cancelled'
);

CREATE FUNCTION hybrid_runner.add_archive_partition(half text, opens timestamp with time zone, closes timestamp with time zone) RETURNS void
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $_$
DECLARE
    partition text := format(
        '%s_%s_%s', half, to_char(opens, 'YYYYMMDDHH24'), to_char(closes, 'YYYYMMDDHH24'));

BEGIN
    -- From the whole to its parts, as an index or a trigger on the archive takes them: one of the
    -- two would otherwise end by a deadlock.
    EXECUTE format(
        'LOCK TABLE ONLY hybrid_runner.archive, ONLY hybrid_runner.%I IN SHARE UPDATE EXCLUSIVE MODE',
        half);

    -- ATTACH, not PARTITION OF: it lets others read and write the archive meanwhile.
    EXECUTE format('LOCK TABLE hybrid_runner.%I IN ACCESS EXCLUSIVE MODE', half || '_default');

    EXECUTE format(
        'CREATE TABLE hybrid_runner.%I '
        '(LIKE hybrid_runner.archive INCLUDING DEFAULTS INCLUDING CONSTRAINTS)', partition);

    EXECUTE format(
        'WITH strays AS (DELETE FROM hybrid_runner.%1$I WHERE finished_at >= %2$L AND finished_at < %3$L RETURNING *) '
        'INSERT INTO hybrid_runner.%4$I SELECT * FROM strays', half || '_default', opens, closes,
        partition);

    EXECUTE format(
        'ALTER TABLE hybrid_runner.%I ATTACH PARTITION hybrid_runner.%I FOR VALUES FROM (%L) TO (%L)',
        half, partition, opens, closes);

END
$_$;

CREATE FUNCTION hybrid_runner.amend(id bigint, version integer, payload jsonb DEFAULT NULL::jsonb, priority integer DEFAULT NULL::integer, run_at timestamp with time zone DEFAULT NULL::timestamp with time zone, data jsonb DEFAULT NULL::jsonb) RETURNS text
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
#variable_conflict use_column
DECLARE
    job hybrid_runner.jobs;
BEGIN
    IF amend.priority NOT BETWEEN 0 AND 9 THEN
        RAISE EXCEPTION 'priority must be 0 to 9, not %', amend.priority
            USING ERRCODE = 'check_violation', CONSTRAINT = 'jobs_priority_is_0_to_9';
    END IF;
    SELECT j.* INTO job FROM hybrid_runner.jobs AS j WHERE j.id = amend.id FOR UPDATE;
    IF NOT FOUND THEN
        RETURN CASE WHEN EXISTS (SELECT FROM hybrid_runner.archived(ARRAY[amend.id]))
            THEN 'finished' ELSE 'unknown' END;
    ELSIF job.version IS DISTINCT FROM amend.version THEN
        RETURN 'stale';
    -- One whose key begins with '>' has not begun: a worker is just asking whether it may, and asks
    -- in vain.
    ELSIF job.state = 'running' AND starts_with(job.key, '>') IS NOT TRUE THEN
        RETURN 'running';
    END IF;
    UPDATE hybrid_runner.jobs AS j SET
        payload = coalesce(amend.payload, j.payload),
        priority = coalesce(amend.priority, j.priority),
        -- What sleeps until a key is free is looked at again: the key may have passed it by.
        run_at = coalesce(amend.run_at, CASE
            WHEN starts_with(j.key, '>') AND j.run_at = 'infinity' THEN clock_timestamp()
            ELSE j.run_at
        END),
        data = coalesce(amend.data, j.data),
        state = 'queued', claim = NULL, worker_id = NULL, started_at = NULL,
        attempt = CASE WHEN j.state = 'running' THEN j.attempt - 1 ELSE j.attempt END,
        version = j.version + 1
    WHERE j.id = amend.id
    RETURNING j.run_at INTO job.run_at;
    PERFORM hybrid_runner.ring(job.queue, job.run_at);
    PERFORM hybrid_runner.publish(job.queue, job.kind, amend.id);
    RETURN 'amended';
END
$$;

CREATE FUNCTION hybrid_runner.apply_row_changes(source integer, behind bigint, most integer) RETURNS TABLE(id bigint, row_key text, what text, did text, refused text)
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
#variable_conflict use_column
DECLARE
    ids bigint[];
    keys text[];
    whats text[];
    done bigint[] := '{}';
BEGIN
    SELECT array_agg(c.id ORDER BY c.id), array_agg(c.row_key ORDER BY c.id), array_agg(c.what ORDER BY c.id)
    INTO ids, keys, whats
    FROM (
        SELECT r.id, r.row_key, r.what
        FROM hybrid_runner.row_changes AS r
        WHERE r.source = apply_row_changes.source AND r.id > apply_row_changes.behind
        ORDER BY r.id
        LIMIT apply_row_changes.most
    ) AS c;
    IF ids IS NULL THEN
        RETURN;
    END IF;
    FOR id, row_key, what, did, refused IN
        SELECT ids[a.place], keys[a.place], whats[a.place], a.did, a.refused
        FROM hybrid_runner.apply_to_jobs(apply_row_changes.source, keys, whats) AS a
    LOOP
        IF did <> 'later' THEN
            done := done || id;
        END IF;
        RETURN NEXT;
    END LOOP;
    DELETE FROM hybrid_runner.row_changes AS r WHERE r.id = ANY (done);
END
$$;

CREATE FUNCTION hybrid_runner.apply_to_jobs(source integer, keys text[], whats text[]) RETURNS TABLE(place integer, did text, refused text)
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
#variable_conflict use_column
DECLARE
    own jsonb;
    live text[];
    found jsonb;
    failed jsonb := '{}';
    key text;
BEGIN
    SELECT coalesce(jsonb_object_agg(j.row_key, j.id), '{}') INTO own
    FROM (
        SELECT o.row_key, o.id
        FROM hybrid_runner.jobs AS o
        WHERE o.source = apply_to_jobs.source AND o.row_key = ANY (apply_to_jobs.keys)
            AND (o.state = 'queued' OR o.started_at <= clock_timestamp() - interval '1 second')
        FOR UPDATE OF o SKIP LOCKED
    ) AS j;
    live := ARRAY(
        SELECT j.row_key
        FROM hybrid_runner.jobs AS j
        WHERE j.source = apply_to_jobs.source AND j.row_key = ANY (apply_to_jobs.keys)
    );
    IF EXISTS (SELECT FROM hybrid_runner.sources AS s WHERE s.id = apply_to_jobs.source) THEN
        BEGIN
            SELECT coalesce(jsonb_object_agg(r.row_key, jsonb_build_array(r.is_wanted, r.is_cancelled)), '{}')
            INTO found
            FROM hybrid_runner.rows_of_source(apply_to_jobs.source, 'judged', apply_to_jobs.keys, NULL) AS r;
        EXCEPTION
            WHEN OTHERS THEN
                -- One row may be at fault: each is asked alone.
                found := '{}';
                FOREACH key IN ARRAY apply_to_jobs.keys LOOP
                    BEGIN
                        found := found || coalesce((
                            SELECT jsonb_build_object(r.row_key, jsonb_build_array(r.is_wanted, r.is_cancelled))
                            FROM hybrid_runner.rows_of_source(apply_to_jobs.source, 'judged', ARRAY[key], NULL) AS r
                        ), '{}');
                    EXCEPTION
                        WHEN OTHERS THEN
                            failed := failed || jsonb_build_object(
                                key, left(format('%s (%s)', SQLERRM, SQLSTATE), 1000));
                    END;
                END LOOP;
        END;
    END IF;

    FOR at IN 1..cardinality(apply_to_jobs.keys) LOOP
        place := at;
        key := apply_to_jobs.keys[at];
        refused := failed ->> key;
        IF refused IS NOT NULL OR key = ANY (live) AND NOT own ? key THEN
            did := 'later';
        ELSIF found IS NULL THEN
            did := 'nothing'; -- it is not attached any more
        ELSE
            BEGIN
                did := CASE
                    WHEN apply_to_jobs.whats[at] = 'wanted' THEN CASE
                        WHEN NOT own ? key AND (found -> key -> 0)::boolean
                            THEN hybrid_runner.want_again(apply_to_jobs.source, key)
                        ELSE 'nothing'
                    END
                    WHEN NOT own ? key THEN 'nothing'
                    WHEN NOT found ? key THEN hybrid_runner.cancel((own ->> key)::bigint, 'its row was deleted', by_row => true)
                    WHEN apply_to_jobs.whats[at] = 'cancelled' AND (found -> key -> 1)::boolean
                        THEN hybrid_runner.cancel((own ->> key)::bigint, 'its row was cancelled', by_row => true)
                    ELSE 'nothing'
                END;
                did := CASE did WHEN 'requested' THEN 'told' WHEN 'finished' THEN 'nothing' ELSE did END;
                refused := NULL;
            EXCEPTION
                WHEN OTHERS THEN
                    did := 'later';
                    refused := left(format('%s (%s)', SQLERRM, SQLSTATE), 1000);
            END;
        END IF;
        RETURN NEXT;
    END LOOP;
END
$$;

CREATE TABLE hybrid_runner.archive (
    id bigint NOT NULL,
    queue text NOT NULL,
    kind text NOT NULL,
    priority smallint NOT NULL,
    payload jsonb NOT NULL,
    data jsonb,
    key text,
    run_at timestamp with time zone NOT NULL,
    max_attempts smallint,
    timeout interval,
    finish_by timestamp with time zone,
    start_by timestamp with time zone,
    max_snoozes integer,
    max_duration interval,
    finish_within interval,
    traceparent text,
    enqueued_by text DEFAULT SESSION_USER NOT NULL,
    source integer,
    row_key text,
    schedule text,
    tick timestamp with time zone,
    state hybrid_runner.job_state NOT NULL,
    attempt smallint NOT NULL,
    snoozes integer NOT NULL,
    began_at timestamp with time zone,
    waits_for text,
    claim bigint,
    worker_id text,
    started_at timestamp with time zone,
    progress jsonb,
    errors jsonb,
    history jsonb,
    version integer NOT NULL,
    cancel_requested_at timestamp with time zone,
    created_at timestamp with time zone NOT NULL,
    finished_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    result jsonb,
    followed_by bigint[],
    CONSTRAINT archive_result_is_at_most_1_mib_as_text CHECK (((pg_column_size(result) <= 32) OR (octet_length((result)::text) <= 1048576))),
    CONSTRAINT archive_states_are_final CHECK ((state = ANY (ARRAY['completed'::hybrid_runner.job_state, 'failed'::hybrid_runner.job_state, 'cancelled'::hybrid_runner.job_state])))
)
PARTITION BY LIST (state);

CREATE FUNCTION hybrid_runner.archived(ids bigint[]) RETURNS SETOF hybrid_runner.archive
    LANGUAGE plpgsql STABLE SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET "TimeZone" TO 'UTC'
    SET "DateStyle" TO 'ISO'
    AS $_$
DECLARE
    missing bigint[] := archived.ids;

    found bigint[];

    opens timestamptz;

    first_opens timestamptz;

    closes timestamptz;

    width interval := '1 hour';

    job hybrid_runner.archive;

BEGIN
    IF cardinality(archived.ids) = 0 THEN
        RETURN;

    END IF;

    SELECT h.noted_at INTO opens FROM hybrid_runner.id_history AS h
    WHERE h.next_id <= (SELECT min(i.id) FROM unnest(archived.ids) AS i (id))
    ORDER BY h.noted_at DESC LIMIT 1;

    opens := coalesce(opens, '-infinity');

    first_opens := opens;

    LOOP
        closes := CASE WHEN isfinite(opens) AND opens + width < clock_timestamp()
            THEN opens + width ELSE 'infinity' END;

        found := '{}';

        -- Bounds that are written into the statement leave all other partitions unplanned.
        FOR job IN EXECUTE format(
            'SELECT a.* FROM hybrid_runner.archive AS a '
            'WHERE a.id = ANY ($1) AND a.finished_at >= %L AND a.finished_at < %L', opens, closes)
            USING missing
        LOOP
            found := array_append(found, job.id);

            RETURN NEXT job;

        END LOOP;

        -- All at once: thousands may be asked for, and each removal would copy them all.
        missing := ARRAY(SELECT unnest(missing) EXCEPT SELECT unnest(found));

        EXIT WHEN cardinality(missing) = 0 OR closes = 'infinity';

        opens := closes;

        width := width * 4;

    END LOOP;

    IF cardinality(missing) > 0 AND isfinite(first_opens) THEN
        RETURN QUERY EXECUTE format(
            'SELECT a.* FROM hybrid_runner.archive AS a '
            'WHERE a.id = ANY ($1) AND a.finished_at < %L', first_opens)
            USING missing;

    END IF;

END
$_$;

CREATE FUNCTION hybrid_runner.begin_successor(id bigint, claim bigint) RETURNS text
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET lock_timeout TO '100ms'
    AS $$
#variable_conflict use_column
DECLARE
    job hybrid_runner.jobs;
    awaited text;
    wakes_at timestamptz;
BEGIN
    -- Not waited for: who has a lock on it changes it, which makes this claim void, or rolls back.
    SELECT j.* INTO job FROM hybrid_runner.jobs AS j
    WHERE j.id = begin_successor.id AND j.claim = begin_successor.claim FOR UPDATE SKIP LOCKED;
    IF NOT FOUND THEN
        -- '': nobody can tell yet, and if the claim stays valid, the worker has to release it.
        RETURN (SELECT '' FROM hybrid_runner.jobs AS j
            WHERE j.id = begin_successor.id AND j.claim = begin_successor.claim);
    END IF;
    WHILE starts_with(job.key, '>') LOOP
        awaited := substr(job.key, 2);
        BEGIN
            PERFORM FROM hybrid_runner.jobs AS j WHERE j.key = awaited FOR SHARE;
            IF FOUND THEN
                wakes_at := 'infinity';
            ELSE
                UPDATE hybrid_runner.jobs AS j SET key = awaited, version = j.version + 1
                WHERE j.id = job.id;
            END IF;
        EXCEPTION
            WHEN unique_violation THEN
                CONTINUE; -- somebody took it just now
            WHEN lock_not_available THEN
                wakes_at := clock_timestamp() + interval '1 second';
        END;
        IF wakes_at IS NOT NULL THEN
            UPDATE hybrid_runner.jobs AS j SET
                state = 'queued', run_at = wakes_at, attempt = j.attempt - 1, claim = NULL,
                worker_id = NULL, started_at = NULL, version = j.version + 1
            WHERE j.id = job.id;
            IF wakes_at < 'infinity' THEN
                PERFORM hybrid_runner.ring(job.queue, wakes_at, true);
            END IF;
            RETURN NULL;
        END IF;
        PERFORM hybrid_runner.pass_keys(ARRAY[job.key]);
        job.key := awaited;
    END LOOP;
    RETURN job.key;
END
$$;

CREATE FUNCTION hybrid_runner.cancel(id bigint, reason text DEFAULT NULL::text, by_row boolean DEFAULT false) RETURNS text
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
#variable_conflict use_column
DECLARE
    job hybrid_runner.jobs;
BEGIN
    -- Locked first: between a claim and this call there is one order.
    SELECT j.* INTO job FROM hybrid_runner.jobs AS j WHERE j.id = cancel.id FOR UPDATE;
    IF NOT FOUND THEN
        RETURN CASE WHEN EXISTS (SELECT FROM hybrid_runner.archived(ARRAY[cancel.id]))
            THEN 'finished' ELSE 'unknown' END;
    END IF;
    -- A job whose worker is dead has nobody to tell: it ends here. Should that worker live after
    -- all, its claim is void.
    -- One whose key begins with '>' has not begun: a worker is just asking whether it may.
    IF job.state = 'running' AND starts_with(job.key, '>') IS NOT TRUE AND EXISTS (
        SELECT FROM hybrid_runner.workers AS w
        WHERE w.id = job.worker_id AND w.dead_at IS NULL
            AND w.heartbeat_at + w.lease > clock_timestamp()
    ) THEN
        UPDATE hybrid_runner.jobs AS j SET
            cancel_requested_at = clock_timestamp(),
            errors = CASE
                WHEN jsonb_typeof(j.errors) <> 'array' THEN jsonb_build_array(j.errors)
                WHEN jsonb_array_length(j.errors) >= 20 THEN j.errors - 0
                ELSE coalesce(j.errors, '[]')
            END || jsonb_build_object(
                'at', clock_timestamp(), 'attempt', j.attempt, 'type', 'Cancel',
                'message', coalesce(left(cancel.reason, 4096), 'cancelled while running')),
            version = j.version + 1
        WHERE j.id = cancel.id AND j.cancel_requested_at IS NULL;
        PERFORM hybrid_runner.notify_if_room('hybrid_runner.' || job.queue, 'cancel ' || cancel.id);
        PERFORM hybrid_runner.publish(job.queue, job.kind, cancel.id);
        RETURN 'requested';
    END IF;
    IF job.source IS NOT NULL AND hybrid_runner.outranks_owner(job.source) THEN
        RAISE 'a superuser runs no code of the table''s owner: use a worker login that is no superuser';
    END IF;
    BEGIN
        PERFORM job.payload::text, job.data::text, job.progress::text, job.errors::text,
            job.history::text;
    EXCEPTION
        WHEN OTHERS THEN -- it is older than the limits, or damaged: the archive can be read
            UPDATE hybrid_runner.jobs AS j
                SET payload = 'null', data = NULL, progress = NULL, errors = NULL, history = NULL
                WHERE j.id = cancel.id;
    END;
    PERFORM hybrid_runner.end_jobs(
        ARRAY[cancel.id], ARRAY[NULL::bigint], ARRAY['cancelled'], ARRAY[NULL::text],
        ARRAY[jsonb_build_object(
            'at', clock_timestamp(), 'attempt', job.attempt, 'type', 'Cancel',
            'message', coalesce(left(cancel.reason, 4096), 'cancelled while ' || job.state))::text],
        cancelled_at => clock_timestamp(), attached => job.source IS NOT NULL,
        by_row => cancel.by_row);
    PERFORM hybrid_runner.publish(job.queue, job.kind, cancel.id);
    -- No worker was there: one of them reports it at its next heartbeat.
    INSERT INTO hybrid_runner.unreported_ends (id) VALUES (cancel.id)
    -- It was cancelled before and retried, and somebody may be reporting that end.
    ON CONFLICT ON CONSTRAINT unreported_ends_pkey DO UPDATE SET ended_at = clock_timestamp(), taken_at = NULL;
    RETURN 'cancelled';
END
$$;

CREATE FUNCTION hybrid_runner.cancel_jobs_without_rows(source integer, behind text, most integer, OUT last_key text, OUT cancelled integer) RETURNS record
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
#variable_conflict use_column
DECLARE
    keys text[];
    there text[];
BEGIN
    keys := ARRAY(
        SELECT j.row_key
        FROM hybrid_runner.jobs AS j
        WHERE j.source = cancel_jobs_without_rows.source AND j.row_key > cancel_jobs_without_rows.behind
        ORDER BY j.row_key
        LIMIT most
    );
    IF cardinality(keys) = most THEN
        last_key := keys[most];
    END IF;
    there := ARRAY(SELECT r.row_key FROM hybrid_runner.rows_of_source(
        cancel_jobs_without_rows.source, 'seen', keys, NULL) AS r);
    -- They are asked once more, when their jobs are locked.
    keys := ARRAY(SELECT k.key FROM unnest(keys) AS k (key) WHERE k.key <> ALL (there) LIMIT 100);
    SELECT count(*) FILTER (WHERE a.did IN ('cancelled', 'told')) INTO cancelled
    FROM hybrid_runner.apply_to_jobs(
        cancel_jobs_without_rows.source, keys, array_fill('gone'::text, ARRAY[cardinality(keys)])) AS a;
END
$$;

CREATE FUNCTION hybrid_runner.changes_channel() RETURNS text
    LANGUAGE sql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
    SELECT 'hybrid_runner.~changes~'
        || to_hex(pg_sequence_last_value('hybrid_runner.changes_channel_number'))
$$;

CREATE FUNCTION hybrid_runner.check_interval(field text, given interval, lowest interval, highest interval, bounds text) RETURNS void
    LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
BEGIN
    IF extract(year FROM given) <> 0 OR extract(month FROM given) <> 0 THEN
        RAISE EXCEPTION '%: a month has no fixed length: give days%', field,
            CASE field WHEN 'every' THEN ', or cron ''0 0 1 * *''' ELSE '' END
            USING ERRCODE = 'invalid_parameter_value';
    END IF;
    -- Days and hours of opposite signs add up to little and reach far. (Postgres 17 and newer have
    -- infinite ones, which are neither.)
    IF given < lowest OR given > highest OR extract(day FROM given) NOT BETWEEN 0 AND 3650
        OR date_part('epoch', given) - 86400 * extract(day FROM given) < 0 THEN
        RAISE EXCEPTION '% must be %, not %', field, bounds, left(given::text, 40)
            USING ERRCODE = 'invalid_parameter_value';
    END IF;
END
$$;

CREATE FUNCTION hybrid_runner.check_key_use(key text, on_conflict text, run_at timestamp with time zone, delay interval, start_by timestamp with time zone, max_wait interval, unique_for interval, max_items integer) RETURNS void
    LANGUAGE plpgsql STABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
DECLARE
    joins boolean := on_conflict IN ('follow', 'collect');
    wrong text;
BEGIN
    wrong := CASE
        WHEN on_conflict IS NULL OR on_conflict NOT IN ('exists', 'replace', 'error', 'follow', 'collect')
            THEN format('on_conflict must be exists, replace, error, follow or collect, not %s',
                coalesce(left(on_conflict, 60), 'NULL'))
        WHEN starts_with(key, '>')
            THEN 'key must not start with >: that is how a job waits for another one''s key'
        WHEN joins AND key IS NULL THEN on_conflict || ' needs a key'
        WHEN joins AND octet_length(key) > 511
            THEN format('a key for follow or collect is at most 511 bytes, not %s', octet_length(key))
        WHEN joins AND run_at = 'infinity' THEN format('run_at must not be infinity for %s', on_conflict)
        WHEN unique_for IS NOT NULL AND key IS NULL THEN 'unique_for needs a key'
        WHEN unique_for IS NOT NULL AND on_conflict NOT IN ('exists', 'error')
            THEN format('unique_for goes with on_conflict exists or error, not %s:'
                ' it would drop the last event', on_conflict)
        -- Months and days of opposite signs add up to little and reach far.
        WHEN NOT (unique_for > interval '0' AND unique_for <= interval '366 days'
            AND extract(epoch FROM unique_for) <= 31622400)
            THEN 'unique_for must be more than zero and at most 366 days'
        WHEN max_wait IS NOT NULL AND on_conflict IN ('exists', 'error')
            THEN format('max_wait goes with on_conflict replace, follow or collect, not %s', on_conflict)
        WHEN max_wait IS NOT NULL AND (key IS NULL OR delay IS NULL AND run_at IS NULL)
            THEN 'max_wait needs a key and a delay'
        WHEN NOT (max_wait > interval '0' AND max_wait <= interval '3650 days'
            AND extract(epoch FROM max_wait) <= 315576000)
            THEN 'max_wait must be more than zero and at most ten years'
        WHEN max_items IS NOT NULL AND on_conflict <> 'collect'
            THEN format('max_items goes with on_conflict collect, not %s', on_conflict)
        WHEN max_items NOT BETWEEN 1 AND 100000
            THEN format('max_items must be 1 to 100000, not %s', max_items)
        -- A run_at of about now may be the time of a call that named none.
        WHEN start_by < run_at AND run_at > now() + interval '1 second'
            THEN 'start_by is before run_at: it could never begin'
    END;
    IF wrong IS NOT NULL THEN
        RAISE EXCEPTION '%', wrong USING ERRCODE = 'invalid_parameter_value';
    END IF;
END
$$;

CREATE FUNCTION hybrid_runner.check_name(field text, given text, most integer) RETURNS void
    LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $_$
BEGIN
    IF given IS NULL OR octet_length(given) > most OR given !~ '^[A-Za-z0-9_][A-Za-z0-9_.:/-]*$' THEN
        RAISE EXCEPTION '% must be 1 to % letters, digits and _ . : / -, not %', field, most,
            hybrid_runner.shown(given) USING ERRCODE = 'invalid_parameter_value';

    END IF;

END
$_$;

CREATE FUNCTION hybrid_runner.check_schedule() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
DECLARE
    line text;
    is_new boolean := TG_OP = 'INSERT';
BEGIN
    -- fire_schedules pauses a row that it cannot read: that must not fail for the same reason.
    IF TG_OP = 'UPDATE' AND new.paused_at >= timestamptz '1970-01-01 UTC'
        AND new.paused_at < timestamptz '9000-01-01 UTC' AND new.ticked_until = old.ticked_until AND (
        new.name, new.kind, new.queue, new.payload, new.priority, new.max_attempts, new.timeout,
        new.cron, new.every, new.at, new.timezone, new.overlap, new.missed, new.catch_up,
        new.jitter, new.starts_at, new.ends_at
    ) IS NOT DISTINCT FROM (
        old.name, old.kind, old.queue, old.payload, old.priority, old.max_attempts, old.timeout,
        old.cron, old.every, old.at, old.timezone, old.overlap, old.missed, old.catch_up,
        old.jitter, old.starts_at, old.ends_at
    ) THEN
        new.version := old.version + 1;
        RETURN new;
    END IF;
    BEGIN
        PERFORM hybrid_runner.check_name('name', new.name, 128);
        PERFORM hybrid_runner.check_name('kind', new.kind, 128);
        IF new.queue IS NOT NULL THEN
            PERFORM hybrid_runner.check_name('queue', new.queue, 48);
        END IF;
        IF num_nonnulls(new.cron, new.every, new.at) <> 1 THEN
            RAISE EXCEPTION 'give one of cron, every and at, not %', coalesce(nullif(concat_ws(
                ' and ', CASE WHEN new.cron IS NOT NULL THEN 'cron' END,
                CASE WHEN new.every IS NOT NULL THEN 'every' END,
                CASE WHEN new.at IS NOT NULL THEN 'at' END), ''), 'none')
                USING ERRCODE = 'invalid_parameter_value';
        END IF;
        IF new.payload IS NULL OR octet_length(new.payload::text) > 1048576 THEN
            RAISE EXCEPTION 'payload must be JSON of at most 1 MiB as text, not %',
                coalesce(octet_length(new.payload::text) || ' bytes', 'NULL')
                USING ERRCODE = 'invalid_parameter_value';
        END IF;
        IF new.priority IS NULL OR new.priority NOT BETWEEN 0 AND 9 THEN
            RAISE EXCEPTION 'priority must be 0 to 9, not %', coalesce(new.priority::text, 'NULL')
                USING ERRCODE = 'invalid_parameter_value';
        END IF;
        IF new.max_attempts NOT BETWEEN 1 AND 1000 THEN
            RAISE EXCEPTION 'max_attempts must be 1 to 1000, not %', new.max_attempts
                USING ERRCODE = 'invalid_parameter_value';
        END IF;
        PERFORM hybrid_runner.check_interval(
            'timeout', new.timeout, '1 microsecond', '3650 days', 'more than zero and at most ten years');
        PERFORM hybrid_runner.check_interval(
            'every', new.every, '1 second', '3650 days', '1 second to ten years');
        PERFORM hybrid_runner.check_word('overlap', new.overlap, '{skip,queue,allow,replace}');
        PERFORM hybrid_runner.check_word('missed', new.missed, '{one,all,none}');
        IF new.missed = 'all' AND new.overlap NOT IN ('queue', 'allow') THEN
            RAISE EXCEPTION 'missed all goes with overlap queue or allow: with % all but one would be lost',
                new.overlap USING ERRCODE = 'invalid_parameter_value';
        END IF;
        IF num_nulls(new.catch_up, new.jitter, new.timezone) > 0 THEN
            RAISE EXCEPTION 'catch_up, jitter and timezone must not be NULL'
                USING ERRCODE = 'invalid_parameter_value';
        END IF;
        PERFORM hybrid_runner.check_interval(
            'catch_up', new.catch_up, '0', '366 days', 'zero to 366 days');
        PERFORM hybrid_runner.check_interval('jitter', new.jitter, '0', '1 day', 'zero to a day');
        IF new.jitter > new.every THEN
            RAISE EXCEPTION 'jitter must not be more than every, which is %', new.every
                USING ERRCODE = 'invalid_parameter_value';
        END IF;
        PERFORM hybrid_runner.check_time('at', new.at);
        PERFORM hybrid_runner.check_time('starts_at', new.starts_at);
        PERFORM hybrid_runner.check_time('ends_at', new.ends_at);
        PERFORM hybrid_runner.check_time('paused_at', new.paused_at);
        IF new.at IS NOT NULL AND num_nonnulls(new.starts_at, new.ends_at) > 0 THEN
            RAISE EXCEPTION 'at is one time: it goes without starts_at and ends_at'
                USING ERRCODE = 'invalid_parameter_value';
        END IF;
        IF new.ends_at < new.starts_at THEN
            RAISE EXCEPTION 'ends_at must not be before starts_at'
                USING ERRCODE = 'invalid_parameter_value';
        END IF;
        IF is_new OR new.timezone <> old.timezone THEN
            PERFORM hybrid_runner.check_zone(new.timezone);
        END IF;
        IF new.cron IS NOT NULL AND (is_new OR new.cron IS DISTINCT FROM old.cron) THEN
            PERFORM hybrid_runner.read_cron(new.cron);
        END IF;
    EXCEPTION
        WHEN invalid_parameter_value THEN
            GET STACKED DIAGNOSTICS line = MESSAGE_TEXT;
            RAISE EXCEPTION 'schedule %: %', hybrid_runner.shown(new.name), line
                USING ERRCODE = 'invalid_parameter_value';
    END;
    IF is_new THEN
        new.ticked_until := hybrid_runner.tick_clock();
        new.next_at := hybrid_runner.tick_after(new);
    ELSE
        new.version := old.version + 1;
        -- By other times the next tick is another one. A tick that waits has its turn all the same.
        IF (new.cron, new.every, new.at, new.timezone, new.starts_at, new.ends_at)
            IS DISTINCT FROM (old.cron, old.every, old.at, old.timezone, old.starts_at, old.ends_at)
            OR (old.paused_at IS NOT NULL AND new.paused_at IS NULL) THEN
            -- Never back: a clock that was set back brings no tick again.
            new.ticked_until := greatest(old.ticked_until, hybrid_runner.tick_clock());
            IF old.paused_at IS NOT NULL AND new.paused_at IS NULL THEN
                new.note := NULL;
            END IF;
            new.next_at := hybrid_runner.tick_after(new);
        END IF;
    END IF;
    RETURN new;
END
$$;

CREATE FUNCTION hybrid_runner.check_time(field text, given timestamp with time zone) RETURNS void
    LANGUAGE plpgsql STABLE PARALLEL SAFE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
BEGIN
    IF given < timestamptz '1970-01-01 UTC' OR given >= timestamptz '9000-01-01 UTC' THEN
        RAISE EXCEPTION '% must be between the years 1970 and 9000, not %', field, left(given::text, 40)
            USING ERRCODE = 'invalid_parameter_value';
    END IF;
END
$$;

CREATE FUNCTION hybrid_runner.check_word(field text, given text, words text[]) RETURNS void
    LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
BEGIN
    IF given IS NULL OR given <> ALL (words) THEN
        RAISE EXCEPTION '% must be % or %, not %', field,
            array_to_string(words[:cardinality(words) - 1], ', '), words[cardinality(words)],
            hybrid_runner.shown(given)
            || coalesce(': did you mean ' || hybrid_runner.nearest_word(given, words) || '?', '')
            USING ERRCODE = 'invalid_parameter_value';
    END IF;
END
$$;

CREATE FUNCTION hybrid_runner.check_zone(zone text) RETURNS void
    LANGUAGE plpgsql STABLE PARALLEL SAFE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $_$
DECLARE
    meant text;

BEGIN
    IF zone = 'UTC' THEN
        RETURN;

    END IF;

    IF octet_length(zone) BETWEEN 1 AND 64 THEN
        BEGIN
            PERFORM timezone(zone, timestamptz '2025-01-01 UTC');

            -- All names are read from files, which takes long: only for those that may be none.
            IF zone ~ '^[A-Za-z_]+/[A-Za-z_/]+$' AND zone !~* '^(posix|right)/'
                OR zone !~ '^[+:<-]' AND zone !~* '^(posix|right)/' AND EXISTS (
                    SELECT FROM pg_timezone_names AS n WHERE lower(n.name) = lower(zone)
                ) AND (lower(zone) IN ('utc', 'gmt') OR NOT EXISTS (
                    SELECT FROM pg_timezone_abbrevs AS a WHERE lower(a.abbrev) = lower(zone)
                )) THEN
                RETURN;

            END IF;

        EXCEPTION
            WHEN invalid_parameter_value THEN
                meant := hybrid_runner.nearest_word(zone, ARRAY(
                    SELECT n.name FROM pg_timezone_names AS n WHERE n.name LIKE '%/%'
                        AND n.name !~ '^(posix|right|Etc)/'
                    ORDER BY n.name
                ));

        END;

    END IF;

    RAISE EXCEPTION 'timezone: there is no %: %', hybrid_runner.shown(zone), CASE
        WHEN meant IS NULL THEN 'name a place, such as Europe/Paris, or UTC'
        ELSE 'did you mean ' || quote_literal(meant) || '?'
    END USING ERRCODE = 'invalid_parameter_value';

END
$_$;

CREATE TABLE hybrid_runner.schedules (
    name text NOT NULL,
    kind text NOT NULL,
    queue text,
    payload jsonb DEFAULT '{}'::jsonb NOT NULL,
    priority smallint DEFAULT 5 NOT NULL,
    max_attempts smallint,
    timeout interval,
    cron text,
    every interval,
    at timestamp with time zone,
    timezone text DEFAULT 'UTC'::text NOT NULL,
    overlap text DEFAULT 'skip'::text NOT NULL,
    missed text DEFAULT 'one'::text NOT NULL,
    catch_up interval DEFAULT '1 day'::interval NOT NULL,
    jitter interval DEFAULT '00:00:00'::interval NOT NULL,
    starts_at timestamp with time zone,
    ends_at timestamp with time zone,
    paused_at timestamp with time zone,
    declared boolean DEFAULT false NOT NULL,
    made_by text DEFAULT SESSION_USER NOT NULL,
    next_at timestamp with time zone,
    ticked_until timestamp with time zone DEFAULT '-infinity'::timestamp with time zone NOT NULL,
    last_tick timestamp with time zone,
    last_job bigint,
    waiting_ticks timestamp with time zone[],
    fired bigint DEFAULT 0 NOT NULL,
    caught_up bigint DEFAULT 0 NOT NULL,
    skipped bigint DEFAULT 0 NOT NULL,
    dropped bigint DEFAULT 0 NOT NULL,
    note text,
    version integer DEFAULT 1 NOT NULL,
    created_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    CONSTRAINT schedules_have_one_of_cron_every_and_at CHECK ((num_nonnulls(cron, every, at) = 1)),
    CONSTRAINT schedules_payload_is_at_most_1_mib_as_text CHECK ((octet_length((payload)::text) <= 1048576)),
    CONSTRAINT schedules_wait_with_1000_ticks_at_most CHECK (((cardinality(waiting_ticks) >= 1) AND (cardinality(waiting_ticks) <= 1000)))
);

CREATE FUNCTION hybrid_runner.count_ticks(its hybrid_runner.schedules, since timestamp with time zone, until timestamp with time zone) RETURNS bigint
    LANGUAGE plpgsql STABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
BEGIN
    RETURN CASE
        WHEN since >= until THEN 0
        WHEN its.at IS NOT NULL THEN CASE WHEN its.at >= since AND its.at < until THEN 1 ELSE 0 END
        WHEN its.every IS NOT NULL THEN
            ceil(extract(epoch FROM until - since)::float8 / extract(epoch FROM its.every)::float8)
        ELSE cardinality(hybrid_runner.cron_ticks(
            its.cron, its.timezone, since - interval '1 microsecond', until - interval '1 microsecond',
            1000))
    END;
END
$$;

CREATE FUNCTION hybrid_runner.cron_ticks(cron text, zone text, since timestamp with time zone, until timestamp with time zone, most integer) RETURNS timestamp with time zone[]
    LANGUAGE plpgsql STABLE PARALLEL SAFE
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET plan_cache_mode TO 'force_generic_plan'
    AS $$
DECLARE
    f record;
    ticks timestamptz[] := '{}';
    -- the last one found: the next is after it
    last timestamptz := greatest(cron_ticks.since, timestamptz '1970-01-01 UTC');
    earliest timestamptz;
    -- what the clock shows: no zone is meant
    clock pg_catalog.timestamp;
    wanted pg_catalog.timestamp;
    tick timestamptz;
    -- when the clock is set back, if that is near
    turn timestamptz;
    back interval;
    near integer;
    far integer;
BEGIN
    SELECT c.minutes, c.hours, c.days, c.months, c.weekdays, c.either_will_do, c.is_real_time
    INTO f FROM hybrid_runner.read_cron(cron_ticks.cron) AS c;
    IF NOT isfinite(last) OR last >= timestamptz '9900-01-01 UTC' THEN
        RETURN ticks;
    END IF;
    WHILE cardinality(ticks) < cron_ticks.most LOOP
        earliest := date_bin('1 minute', last, timestamptz '1970-01-01 UTC') + interval '1 minute';
        turn := NULL;
        clock := timezone(zone, earliest);
        IF f.is_real_time THEN
            IF timezone(zone, earliest + interval '3 hours') - clock < interval '3 hours' THEN
                -- The clock is set back soon, and some of its times come again: the minute of that.
                near := 0;
                far := 180;
                WHILE far - near > 1 LOOP
                    IF timezone(zone, earliest + make_interval(mins => (near + far) / 2)) - clock
                        < make_interval(mins => (near + far) / 2) THEN
                        far := (near + far) / 2;
                    ELSE
                        near := (near + far) / 2;
                    END IF;
                END LOOP;
                turn := earliest + make_interval(mins => far);
            END IF;
        ELSE
            -- One minute on the wall clock: a minute of time may pass a skipped hour.
            clock := date_trunc('minute', timezone(zone, last)) + interval '1 minute';
        END IF;
        LOOP
            wanted := hybrid_runner.next_on_clock(
                clock, f.minutes, f.hours, f.days, f.months, f.weekdays, f.either_will_do);
            IF wanted IS NULL THEN
                RETURN ticks;
            END IF;
            IF turn IS NOT NULL THEN
                tick := earliest + (wanted - clock);
                IF tick >= turn THEN -- none before it
                    last := turn - interval '1 minute';
                    tick := NULL;
                END IF;
                EXIT;
            END IF;
            tick := timezone(zone, wanted);
            IF timezone(zone, tick) <> wanted THEN
                -- The clock never shows it. (Apia has skipped a whole day.)
                IF NOT f.is_real_time THEN
                    near := -1560;
                    far := 0;
                    WHILE far - near > 1 LOOP
                        IF timezone(zone, tick + make_interval(mins => (near + far) / 2)) > wanted THEN
                            far := (near + far) / 2;
                        ELSE
                            near := (near + far) / 2;
                        END IF;
                    END LOOP;
                    tick := tick + make_interval(mins => far);
                    EXIT WHEN tick > last;
                END IF;
            ELSE
                -- Postgres takes the second of two: was there one before?
                back := timezone(zone, tick - interval '3 hours') - wanted + interval '3 hours';
                IF back > interval '0' AND timezone(zone, tick - back) = wanted
                    AND (tick - back >= earliest OR NOT f.is_real_time) THEN
                    tick := tick - back;
                END IF;
                EXIT WHEN tick > last;
            END IF;
            clock := wanted + interval '1 minute';
        END LOOP;
        CONTINUE WHEN tick IS NULL;
        IF tick > cron_ticks.until THEN
            RETURN ticks;
        END IF;
        ticks := ticks || tick;
        last := tick;
    END LOOP;
    RETURN ticks;
END
$$;

CREATE FUNCTION hybrid_runner.declare_schedules(names text[], kinds text[], payloads text[], crons text[], everys interval[], ats timestamp with time zone[], timezones text[], queues text[], priorities integer[], max_attempts integer[], timeouts interval[], "overlaps" text[], missed text[], catch_ups interval[], jitters interval[], starts_at timestamp with time zone[], ends_at timestamp with time zone[]) RETURNS TABLE(name text, problem text)
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET lock_timeout TO '2s'
    AS $$
#variable_conflict use_column
DECLARE
    d record;
BEGIN
    FOR d IN
        SELECT
            u.name, u.kind, u.payload, u.cron, u.every, u.at, u.timezone, u.queue, u.priority,
            u.max_attempts, u.timeout, u.overlap, u.missed, u.catch_up, u.jitter, u.starts_at, u.ends_at
        FROM unnest(
            declare_schedules.names, declare_schedules.kinds, declare_schedules.payloads,
            declare_schedules.crons, declare_schedules.everys, declare_schedules.ats,
            declare_schedules.timezones, declare_schedules.queues, declare_schedules.priorities,
            declare_schedules.max_attempts, declare_schedules.timeouts, declare_schedules.overlaps,
            declare_schedules.missed, declare_schedules.catch_ups, declare_schedules.jitters,
            declare_schedules.starts_at, declare_schedules.ends_at
        ) AS u (
            name, kind, payload, cron, every, at, timezone, queue, priority, max_attempts, timeout,
            overlap, missed, catch_up, jitter, starts_at, ends_at
        )
        ORDER BY u.name COLLATE "C"
    LOOP
        BEGIN
            PERFORM hybrid_runner.store_schedule(
                d.name, d.kind, d.payload::jsonb, d.cron, d.every, d.at, d.timezone, d.queue,
                d.priority, d.max_attempts, d.timeout, d.overlap, d.missed, d.catch_up, d.jitter,
                d.starts_at, d.ends_at, true);
        EXCEPTION
            WHEN lock_not_available THEN
                -- Who holds one may hold all of them, and nothing fires meanwhile.
                PERFORM set_config('lock_timeout', '10ms', true);
                RETURN QUERY SELECT d.name, 'somebody''s open transaction has this schedule: it stays as it is';
        END;
    END LOOP;
END
$$;

CREATE FUNCTION hybrid_runner.declared_now() RETURNS SETOF text
    LANGUAGE sql STABLE
    AS $$
    SELECT DISTINCT n.name
    FROM hybrid_runner.workers AS w CROSS JOIN LATERAL pg_catalog.unnest(w.schedules) AS n (name)
    WHERE w.dead_at IS NULL AND w.heartbeat_at + w.lease > pg_catalog.clock_timestamp()
$$;

CREATE FUNCTION hybrid_runner.end_expired(ids bigint[], versions integer[], errors text[]) RETURNS SETOF bigint
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
DECLARE
    own_ids bigint[];
    own_errors text[];
    job record;
BEGIN
    SELECT array_agg(own.id), array_agg(own.error) INTO own_ids, own_errors
    FROM (
        SELECT j.id, found.error
        FROM unnest(end_expired.ids, end_expired.versions, end_expired.errors)
            AS found (id, version, error)
        INNER JOIN hybrid_runner.jobs AS j ON j.id = found.id
        WHERE j.id = ANY (end_expired.ids) AND j.state = 'queued' AND j.version = found.version
        FOR UPDATE OF j SKIP LOCKED
    ) AS own;
    IF own_ids IS NULL THEN
        RETURN;
    END IF;
    FOR job IN
        SELECT j.id, j.queue, j.kind FROM hybrid_runner.jobs AS j WHERE j.id = ANY (own_ids)
    LOOP
        PERFORM hybrid_runner.publish(job.queue, job.kind, job.id);
    END LOOP;
    -- No worker was there: one of them reports it at its next heartbeat.
    INSERT INTO hybrid_runner.unreported_ends (id) SELECT o.id FROM unnest(own_ids) AS o (id)
    ON CONFLICT ON CONSTRAINT unreported_ends_pkey
        DO UPDATE SET ended_at = clock_timestamp(), taken_at = NULL;
    RETURN QUERY
    SELECT e.id
    FROM hybrid_runner.end_jobs(
        own_ids, NULL, array_fill('failed'::text, ARRAY[cardinality(own_ids)]),
        ARRAY[NULL::text], own_errors
    ) AS e (id);
END
$$;

CREATE FUNCTION hybrid_runner.end_jobs(ids bigint[], claims bigint[], states text[], results text[], errors text[], cancelled_at timestamp with time zone DEFAULT NULL::timestamp with time zone, traceparents text[] DEFAULT NULL::text[], follow_ups text[] DEFAULT NULL::text[], kinds text[] DEFAULT NULL::text[], on_ends text[] DEFAULT NULL::text[], attached boolean DEFAULT NULL::boolean, by_row boolean DEFAULT false, put_off boolean DEFAULT false) RETURNS SETOF bigint
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
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

CREATE FUNCTION hybrid_runner.end_unbegun(past interval, after_kind text, after_id bigint, most integer) RETURNS TABLE(last_kind text, last_id bigint, ended bigint[])
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
DECLARE
    late bigint[];
    own_ids bigint[];
    own_errors text[];
    job record;
BEGIN
    WITH read AS MATERIALIZED (
        SELECT j.kind, j.id, j.start_by, j.began_at, j.attempt
        FROM hybrid_runner.jobs AS j
        WHERE j.state = 'queued'
            AND (j.began_at IS NOT NULL OR j.finish_by IS NOT NULL OR j.finish_within IS NOT NULL OR j.start_by IS NOT NULL)
            AND (j.kind, j.id) > (after_kind, after_id)
        ORDER BY j.kind, j.id
        LIMIT most
    ),
    last AS (
        SELECT r.kind, r.id FROM read AS r WHERE (SELECT count(*) FROM read) = most ORDER BY r.kind DESC, r.id DESC LIMIT 1
    )
    SELECT
        (SELECT l.kind FROM last AS l), (SELECT l.id FROM last AS l),
        ARRAY(
            SELECT r.id FROM read AS r
            WHERE r.start_by <= clock_timestamp() - past AND r.began_at IS NULL AND r.attempt = 0
        )
    INTO last_kind, last_id, late;
    SELECT array_agg(own.id), array_agg(jsonb_build_object(
        'at', clock_timestamp(), 'attempt', 0, 'type', 'Expired',
        'message', format('start_by (%s) passed before it could begin', own.start_by))::text)
    INTO own_ids, own_errors
    FROM (
        SELECT j.id, j.start_by
        FROM hybrid_runner.jobs AS j
        WHERE j.id = ANY (late) AND j.state = 'queued' AND j.began_at IS NULL AND j.attempt = 0
            AND j.start_by <= clock_timestamp() - past
        FOR UPDATE SKIP LOCKED
    ) AS own;
    IF own_ids IS NOT NULL THEN
        FOR job IN
            SELECT j.id, j.queue, j.kind FROM hybrid_runner.jobs AS j WHERE j.id = ANY (own_ids)
        LOOP
            PERFORM hybrid_runner.publish(job.queue, job.kind, job.id);
        END LOOP;
        -- No worker was there: one of them reports it at its next heartbeat.
        INSERT INTO hybrid_runner.unreported_ends (id) SELECT o.id FROM unnest(own_ids) AS o (id)
        ON CONFLICT ON CONSTRAINT unreported_ends_pkey
            DO UPDATE SET ended_at = clock_timestamp(), taken_at = NULL;
    END IF;
    ended := CASE WHEN own_ids IS NULL THEN '{}' ELSE ARRAY(
        SELECT e.id
        FROM hybrid_runner.end_jobs(
            own_ids, NULL, array_fill('cancelled'::text, ARRAY[cardinality(own_ids)]),
            ARRAY[NULL::text], own_errors
        ) AS e (id)
    ) END;
    RETURN NEXT;
END
$$;

CREATE FUNCTION hybrid_runner.ended_payload(id bigint, kind text, key text, state text, payload jsonb, data jsonb, result jsonb, errors jsonb) RETURNS jsonb
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
DECLARE
    part text;
    -- What a handler says after somebody has cancelled its job does not hide why.
    why text := CASE WHEN state = 'cancelled' AND jsonb_typeof(errors) = 'array' THEN (
        SELECT e.error ->> 'message'
        FROM jsonb_array_elements(errors) WITH ORDINALITY AS e (error, place)
        WHERE e.error ->> 'type' = 'Cancel'
        ORDER BY e.place DESC LIMIT 1
    ) END;
    left_out text[] := '{}';
    said jsonb := jsonb_build_object(
        'id', id, 'kind', kind, 'key', key, 'state', state,
        'reason', CASE WHEN state <> 'completed' THEN left(coalesce(why, errors -> -1 ->> 'message'), 4096) END,
        'payload', payload, 'data', data, 'result', result, 'errors', coalesce(errors, '[]'));
BEGIN
    FOREACH part IN ARRAY ARRAY['result', 'data', 'errors', 'payload'] LOOP
        EXIT WHEN octet_length(said::text) <= 1048576;
        CONTINUE WHEN said -> part IN ('null', '[]');
        left_out := left_out || part;
        said := said || jsonb_build_object(
            part, CASE part WHEN 'errors' THEN jsonb '[]' END, 'left_out', left_out);
    END LOOP;
    RETURN said;
END
$$;

CREATE FUNCTION hybrid_runner.enqueue(kind text, payload jsonb DEFAULT '{}'::jsonb, queue text DEFAULT NULL::text, key text DEFAULT NULL::text, priority integer DEFAULT 5, run_at timestamp with time zone DEFAULT NULL::timestamp with time zone, delay interval DEFAULT NULL::interval, max_attempts integer DEFAULT NULL::integer, timeout interval DEFAULT NULL::interval, finish_by timestamp with time zone DEFAULT NULL::timestamp with time zone, data jsonb DEFAULT NULL::jsonb, traceparent text DEFAULT NULL::text, on_conflict text DEFAULT 'exists'::text, max_snoozes integer DEFAULT NULL::integer, max_duration interval DEFAULT NULL::interval, finish_within interval DEFAULT NULL::interval, start_by timestamp with time zone DEFAULT NULL::timestamp with time zone, max_wait interval DEFAULT NULL::interval, unique_for interval DEFAULT NULL::interval, max_items integer DEFAULT NULL::integer) RETURNS bigint
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
DECLARE
    done record;
BEGIN
    SELECT e.id, e.outcome INTO done FROM hybrid_runner.enqueue_job(
        kind, payload, queue, key, priority, run_at, delay, max_attempts, timeout, finish_by, data,
        traceparent, on_conflict, max_snoozes, max_duration, finish_within, start_by, max_wait,
        unique_for, max_items) AS e;
    IF done.outcome = 'exists' THEN
        RAISE NOTICE
            'key % is held by live job %: nothing was stored (enqueue_job() returns this as a column)',
            quote_literal(key), done.id;
    END IF;
    RETURN done.id;
END
$$;

CREATE FUNCTION hybrid_runner.enqueue_job(kind text, payload jsonb DEFAULT '{}'::jsonb, queue text DEFAULT NULL::text, key text DEFAULT NULL::text, priority integer DEFAULT 5, run_at timestamp with time zone DEFAULT NULL::timestamp with time zone, delay interval DEFAULT NULL::interval, max_attempts integer DEFAULT NULL::integer, timeout interval DEFAULT NULL::interval, finish_by timestamp with time zone DEFAULT NULL::timestamp with time zone, data jsonb DEFAULT NULL::jsonb, traceparent text DEFAULT NULL::text, on_conflict text DEFAULT 'exists'::text, max_snoozes integer DEFAULT NULL::integer, max_duration interval DEFAULT NULL::interval, finish_within interval DEFAULT NULL::interval, start_by timestamp with time zone DEFAULT NULL::timestamp with time zone, max_wait interval DEFAULT NULL::interval, unique_for interval DEFAULT NULL::interval, max_items integer DEFAULT NULL::integer) RETURNS TABLE(id bigint, outcome text)
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET lock_timeout TO '5s'
    SET plan_cache_mode TO 'force_generic_plan'
    SET enable_seqscan TO 'off'
    AS $$
#variable_conflict use_column
DECLARE
    -- Made of seconds: a day of an interval is longer or shorter when the session's time zone
    -- changes its clocks.
    due timestamptz := coalesce(enqueue_job.run_at, clock_timestamp() + coalesce(
        make_interval(secs => extract(epoch FROM enqueue_job.delay)::float8), interval '0'));
    trace text := coalesce(enqueue_job.traceparent,
        nullif(current_setting('hybrid_runner.traceparent', true), ''));
    holder hybrid_runner.jobs;
    may_replace boolean := false;
    its_queue text;
    new hybrid_runner.jobs;
BEGIN
    IF enqueue_job.on_conflict IS DISTINCT FROM 'exists' OR starts_with(enqueue_job.key, '>')
        OR num_nonnulls(enqueue_job.start_by, enqueue_job.max_wait, enqueue_job.unique_for,
            enqueue_job.max_items) > 0 THEN
        PERFORM hybrid_runner.check_key_use(
            enqueue_job.key, enqueue_job.on_conflict, enqueue_job.run_at, enqueue_job.delay,
            enqueue_job.start_by, enqueue_job.max_wait, enqueue_job.unique_for,
            enqueue_job.max_items);
        due := least(due, clock_timestamp() + enqueue_job.max_wait);
    END IF;
    IF enqueue_job.run_at IS NOT NULL AND enqueue_job.delay IS NOT NULL THEN
        RAISE EXCEPTION 'give run_at or delay, not both' USING ERRCODE = 'invalid_parameter_value';
    END IF;
    IF enqueue_job.priority IS NULL OR enqueue_job.priority NOT BETWEEN 0 AND 9 THEN
        RAISE EXCEPTION 'priority must be 0 to 9, not %',
            coalesce(enqueue_job.priority::text, 'NULL')
            USING ERRCODE = 'check_violation', CONSTRAINT = 'jobs_priority_is_0_to_9';
    END IF;
    IF enqueue_job.max_attempts NOT BETWEEN 1 AND 1000 THEN
        RAISE EXCEPTION 'max_attempts must be 1 to 1000, not %', enqueue_job.max_attempts
            USING ERRCODE = 'check_violation', CONSTRAINT = 'jobs_max_attempts_is_1_to_1000';
    END IF;
    IF enqueue_job.max_snoozes < 0 THEN
        RAISE EXCEPTION 'max_snoozes must be 0 to 2147483647, not %', enqueue_job.max_snoozes
            USING ERRCODE = 'invalid_parameter_value';
    END IF;
    IF enqueue_job.max_duration <= interval '0' OR enqueue_job.max_duration > interval '3650 days' THEN
        RAISE EXCEPTION 'max_duration must be more than zero and at most ten years'
            USING ERRCODE = 'invalid_parameter_value';
    END IF;
    IF enqueue_job.finish_within <= interval '0' OR enqueue_job.finish_within > interval '3650 days' THEN
        RAISE EXCEPTION 'finish_within must be more than zero and at most ten years'
            USING ERRCODE = 'invalid_parameter_value';
    END IF;
    SELECT k.queue INTO its_queue FROM hybrid_runner.kinds AS k WHERE k.name = enqueue_job.kind;
    IF NOT FOUND THEN
        its_queue := hybrid_runner.queue_of(enqueue_job.kind); -- which warns of what looks like a typo
    END IF;
    its_queue := coalesce(enqueue_job.queue, its_queue);

    IF enqueue_job.on_conflict IN ('follow', 'collect') THEN
        new.kind := enqueue_job.kind;
        new.queue := its_queue;
        new.key := enqueue_job.key;
        new.priority := enqueue_job.priority;
        new.run_at := due;
        new.max_attempts := enqueue_job.max_attempts;
        new.timeout := enqueue_job.timeout;
        new.finish_by := enqueue_job.finish_by;
        new.start_by := enqueue_job.start_by;
        new.traceparent := trace;
        new.max_snoozes := enqueue_job.max_snoozes;
        new.max_duration := enqueue_job.max_duration;
        new.finish_within := enqueue_job.finish_within;
        IF enqueue_job.on_conflict = 'collect' AND enqueue_job.payload = '[]' THEN
            RAISE EXCEPTION 'collect needs at least one item'
                USING ERRCODE = 'invalid_parameter_value';
        END IF;
        RETURN QUERY SELECT j.id, j.outcome FROM hybrid_runner.join_key(
            to_jsonb(new), coalesce(enqueue_job.payload, '{}'), enqueue_job.data,
            enqueue_job.on_conflict = 'collect', enqueue_job.max_wait,
            coalesce(enqueue_job.max_items, 1000)) AS j;
        RETURN;
    END IF;
    IF enqueue_job.unique_for IS NOT NULL THEN
        enqueue_job.id := hybrid_runner.take_key(enqueue_job.key, enqueue_job.unique_for);
        IF enqueue_job.id IS NOT NULL THEN
            IF enqueue_job.on_conflict = 'error' THEN
                RAISE EXCEPTION 'key % was taken by job %, and is not free yet',
                    quote_literal(enqueue_job.key), enqueue_job.id
                    USING ERRCODE = 'unique_violation', CONSTRAINT = 'jobs_one_live_job_per_key';
            END IF;
            enqueue_job.outcome := 'exists';
            RETURN NEXT;
            RETURN;
        END IF;
    END IF;

    FOR tries IN 1..10 LOOP
        INSERT INTO hybrid_runner.jobs AS j
            (kind, payload, queue, key, priority, run_at, max_attempts, timeout, finish_by,
            data, traceparent, max_snoozes, max_duration, finish_within, start_by)
        VALUES (enqueue_job.kind, coalesce(enqueue_job.payload, '{}'), its_queue,
            enqueue_job.key, enqueue_job.priority, due, enqueue_job.max_attempts,
            enqueue_job.timeout, enqueue_job.finish_by, enqueue_job.data, trace,
            enqueue_job.max_snoozes, enqueue_job.max_duration, enqueue_job.finish_within,
            enqueue_job.start_by)
        ON CONFLICT (key) WHERE key IS NOT NULL DO NOTHING
        RETURNING j.id, 'inserted' INTO enqueue_job.id, enqueue_job.outcome;
        IF FOUND THEN
            IF enqueue_job.unique_for IS NOT NULL THEN
                UPDATE hybrid_runner.taken_keys AS t SET job_id = enqueue_job.id
                WHERE t.key = enqueue_job.key;
            END IF;
            RETURN NEXT;
            RETURN;
        END IF;

        -- Locked only to replace it: a lock held until the caller commits hides a queued job from
        -- claims without a ring afterwards, and on a running one it holds up its settling and all
        -- that settle with it.
        -- One's own alone: else any producer could hide the jobs of others from workers.
        -- Whoever may write payloads as it is may write them this way too.
        IF enqueue_job.on_conflict = 'replace' THEN
            SELECT j.* INTO holder FROM hybrid_runner.jobs AS j
            WHERE j.key = enqueue_job.key AND j.state <> 'running'
                AND (j.enqueued_by = session_user OR has_column_privilege(
                    session_user, 'hybrid_runner.jobs', 'payload', 'UPDATE'))
            FOR UPDATE;
            may_replace := FOUND;
        END IF;
        IF holder.id IS NULL THEN
            SELECT j.* INTO holder FROM hybrid_runner.jobs AS j WHERE j.key = enqueue_job.key;
        END IF;
        -- The holder ended between the two statements: the key is free again.
        CONTINUE WHEN holder.id IS NULL;
        IF enqueue_job.unique_for IS NOT NULL THEN
            -- A live job has it that did not take it for longer: nor does this call.
            DELETE FROM hybrid_runner.taken_keys AS t WHERE t.key = enqueue_job.key;
        END IF;

        IF enqueue_job.on_conflict = 'error' THEN
            RAISE EXCEPTION 'key % is held by live job %', quote_literal(enqueue_job.key), holder.id
                USING ERRCODE = 'unique_violation', CONSTRAINT = 'jobs_one_live_job_per_key';
        END IF;
        IF enqueue_job.on_conflict = 'replace' AND holder.state = 'queued'
            AND holder.enqueued_by <> session_user AND NOT has_column_privilege(
                session_user, 'hybrid_runner.jobs', 'payload', 'UPDATE') THEN
            RAISE EXCEPTION 'key % is held by job %, which % enqueued: to replace jobs of other '
                'logins takes the right UPDATE (payload) on hybrid_runner.jobs',
                quote_literal(enqueue_job.key), holder.id, quote_ident(holder.enqueued_by)
                USING ERRCODE = 'insufficient_privilege';
        END IF;
        enqueue_job.id := holder.id;
        enqueue_job.outcome := 'exists';
        IF may_replace THEN
            UPDATE hybrid_runner.jobs AS j SET
                kind = enqueue_job.kind, payload = coalesce(enqueue_job.payload, '{}'),
                queue = its_queue, priority = enqueue_job.priority,
                run_at = CASE WHEN enqueue_job.max_wait IS NULL THEN due ELSE least(due, greatest(
                    j.created_at + enqueue_job.max_wait, clock_timestamp())) END,
                max_attempts = enqueue_job.max_attempts, timeout = enqueue_job.timeout,
                finish_by = enqueue_job.finish_by, data = enqueue_job.data, traceparent = trace,
                max_snoozes = enqueue_job.max_snoozes, max_duration = enqueue_job.max_duration,
                finish_within = enqueue_job.finish_within, start_by = enqueue_job.start_by,
                attempt = 0, snoozes = 0, began_at = NULL, waits_for = NULL, errors = NULL,
                history = NULL, version = j.version + 1
            WHERE j.id = holder.id AND j.state <> 'running'
            RETURNING j.run_at INTO due;
            IF FOUND THEN -- else it was claimed meanwhile: it exists
                PERFORM hybrid_runner.ring(its_queue, due);
                PERFORM hybrid_runner.publish(its_queue, enqueue_job.kind, holder.id);
                enqueue_job.outcome := 'replaced';
            END IF;
        END IF;
        RETURN NEXT;
        RETURN;
    END LOOP;
    RAISE EXCEPTION 'key % changes hands too fast: try again', quote_literal(enqueue_job.key)
        USING ERRCODE = 'serialization_failure';
END
$$;

CREATE FUNCTION hybrid_runner.enqueue_jobs(kinds text[], payloads text[], queues text[], priorities integer[], run_ats timestamp with time zone[], traceparents text[], max_attempts integer[], timeouts interval[], finish_bys timestamp with time zone[], data text[], delays interval[], max_snoozes integer[], max_durations interval[], finish_withins interval[], start_bys timestamp with time zone[], keys text[], on_conflict text, max_wait interval, unique_for interval, max_items integer) RETURNS TABLE(place bigint, id bigint, outcome text)
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET lock_timeout TO '5s'
    SET enable_seqscan TO 'off'
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

CREATE FUNCTION hybrid_runner.estimate(query text) RETURNS bigint
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
DECLARE
    plan json;
BEGIN
    EXECUTE 'EXPLAIN (FORMAT JSON) ' || query INTO plan;
    RETURN (plan -> 0 -> 'Plan' ->> 'Plan Rows')::numeric::bigint;
END
$$;

CREATE FUNCTION hybrid_runner.find_growth(longer_than interval DEFAULT '00:10:00'::interval) RETURNS TABLE(cause text, complaint text)
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET "TimeZone" TO 'UTC'
    SET "DateStyle" TO 'ISO'
    AS $_$
DECLARE
    known bigint;

BEGIN
    SELECT max(h.next_xid) INTO known FROM hybrid_runner.xid_history AS h
    WHERE h.noted_at <= clock_timestamp() - longer_than;

    DELETE FROM hybrid_runner.xid_history AS h
    WHERE h.noted_at < clock_timestamp() - greatest(interval '1 day', 2 * longer_than);

    INSERT INTO hybrid_runner.xid_history (next_xid)
    VALUES (pg_snapshot_xmax(pg_current_snapshot())::text::bigint);

    RETURN QUERY
    SELECT
        'session ' || s.pid, format(
            'session %s (%s, %s) has been in one transaction for %s and keeps vacuum from cleaning up: '
            'end it, or SELECT pg_terminate_backend(%s)',
            s.pid, coalesce(nullif(s.application_name, ''), 'no name'), s.state,
            date_trunc('second', clock_timestamp() - s.xact_start), s.pid)
    FROM pg_stat_activity AS s
    WHERE s.datname = current_database() AND s.backend_type = 'client backend'
        AND s.xact_start < clock_timestamp() - longer_than
        AND (s.backend_xmin IS NOT NULL OR s.backend_xid IS NOT NULL) AND s.pid <> pg_backend_pid()
    ORDER BY s.xact_start
    LIMIT 1;

    RETURN QUERY
    SELECT
        'prepared ' || p.gid, format(
            'prepared transaction %L of %s has waited for %s and keeps vacuum from cleaning up: COMMIT PREPARED or ROLLBACK PREPARED it',
            p.gid, p.owner, date_trunc('second', clock_timestamp() - p.prepared))
    FROM pg_prepared_xacts AS p
    WHERE p.database = current_database() AND p.prepared < clock_timestamp() - longer_than
    ORDER BY p.prepared
    LIMIT 1;

    -- Neither of these says since when; and numbers of transactions wrap around.
    RETURN QUERY
    SELECT
        'slot ' || s.slot_name, format(
            'replication slot %s (%s) has kept vacuum from cleaning up for longer than %s: let its reader catch up, or drop it',
            quote_ident(s.slot_name), CASE WHEN s.active THEN 'in use' ELSE 'nobody uses it' END,
            longer_than)
    FROM pg_replication_slots AS s
    WHERE EXISTS (
        SELECT FROM unnest(ARRAY[s.xmin, s.catalog_xmin]) AS x (id)
        WHERE ((known - x.id::text::bigint) & 4294967295) BETWEEN 1 AND 2147483647
    )
    ORDER BY greatest(age(s.xmin), age(s.catalog_xmin)) DESC
    LIMIT 1;

    RETURN QUERY
    SELECT
        'standby ' || r.application_name, format(
            'standby %s (%s, hot_standby_feedback) has kept vacuum from cleaning up for longer than %s: look for a long query there',
            r.application_name, coalesce(host(r.client_addr), 'local'), longer_than)
    FROM pg_stat_replication AS r
    WHERE ((known - r.backend_xmin::text::bigint) & 4294967295) BETWEEN 1 AND 2147483647
    ORDER BY age(r.backend_xmin) DESC
    LIMIT 1;

    RETURN QUERY
    SELECT
        'setting ' || s.name, format(
            '%s is off on this server: nothing cleans up hybrid_runner.jobs; switch it on', s.name)
    FROM pg_settings AS s
    WHERE s.name IN ('autovacuum', 'track_counts') AND s.setting = 'off'
    UNION ALL
    SELECT
        'option autovacuum',
        'autovacuum is off for hybrid_runner.jobs: ALTER TABLE hybrid_runner.jobs RESET (autovacuum_enabled)'
    FROM pg_class AS c
    CROSS JOIN LATERAL pg_options_to_table(c.reloptions) AS o
    WHERE c.oid = 'hybrid_runner.jobs'::regclass AND o.option_name = 'autovacuum_enabled'
        AND NOT o.option_value::boolean;

    -- All who lock a row of that table have this lock on the table until they commit.
    RETURN QUERY
    SELECT
        'prune', format(
            'ended jobs could not be removed %s times in a row, because %s: end it, or look why prune() fails',
            d.missed_turns, coalesce(
                'session ' || holder.pid || ' (' || holder.usename || ', '
                || coalesce(nullif(holder.application_name, ''), 'no name')
                || coalesce(', in a transaction since ' || date_trunc('second', holder.xact_start),
                    '') || ') holds its lock',
                'somebody held its lock'))
    FROM hybrid_runner.duties AS d
    LEFT JOIN LATERAL (
        SELECT s.pid, s.usename, s.application_name, s.xact_start
        FROM pg_locks AS l
        JOIN pg_stat_activity AS s ON s.pid = l.pid
        WHERE l.relation = 'hybrid_runner.locks'::regclass AND l.mode = 'RowShareLock'
            AND l.granted
            AND l.database = (SELECT b.oid FROM pg_database AS b
                WHERE b.datname = current_database())
        ORDER BY s.xact_start LIMIT 1
    ) AS holder ON true
    WHERE d.name = 'prune' AND d.missed_turns >= 3;

    -- Which listener it waits for Postgres tells its log alone; one that is in no transaction reads
    -- on by itself.
    RETURN QUERY
    SELECT
        'notifications', format(
            'the queue of notifications of this server is %s %% full: somebody listens and is in a transaction for long%s; '
            'from 50 %% on inserts ring for nobody, and jobs are found by polls',
            round(100 * pg_notification_queue_usage()), coalesce((
                SELECT format(', perhaps session %s (%s, in database %s, since %s): SELECT pg_terminate_backend(%1$s)',
                    s.pid, coalesce(nullif(s.application_name, ''), 'no name'), s.datname,
                    date_trunc('second', s.xact_start))
                FROM pg_stat_activity AS s
                WHERE s.backend_type = 'client backend' AND s.pid <> pg_backend_pid()
                    AND s.xact_start IS NOT NULL
                ORDER BY s.xact_start
                LIMIT 1), ''))
    WHERE pg_notification_queue_usage() > 0.1;

    RETURN QUERY
    SELECT
        'ahead ' || s.half, format(
            'hybrid_runner.%s has no partition from %s on: see why make_archive_partitions fails',
            s.half, coalesce(newest.upper::text, 'now'))
    FROM hybrid_runner.archive_halves AS s
    LEFT JOIN LATERAL (
        SELECT p.lower, p.upper FROM hybrid_runner.archive_partitions AS p
        WHERE p.half = s.half AND NOT p.is_default ORDER BY p.upper DESC LIMIT 1
    ) AS newest ON true
    WHERE (newest.upper > now() + CASE WHEN newest.upper - newest.lower > '1 hour'
        THEN interval '1 day' ELSE '2 hours' END) IS NOT TRUE
    ORDER BY s.half;

    RETURN QUERY
    SELECT
        'strays ' || s.half, format(
            'hybrid_runner.%s has rows: when they ended there was no partition; see why make_archive_partitions fails', s.half)
    FROM (
        SELECT 'archive_completed_default' AS half
        WHERE EXISTS (SELECT FROM hybrid_runner.archive_completed_default)
        UNION ALL
        SELECT 'archive_failed_default'
        WHERE EXISTS (SELECT FROM hybrid_runner.archive_failed_default)
    ) AS s;

END
$_$;

CREATE FUNCTION hybrid_runner.find_lockers(relation regclass, xmax text) RETURNS SETOF integer
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
DECLARE
    numbers text[] := ARRAY[find_lockers.xmax];
    others integer[];
    -- Above all that run: the snapshot's own bound may lie below them.
    above bigint := pg_snapshot_xmax(pg_current_snapshot())::text::bigint + 1000000;
    place bigint;
BEGIN
    FOR turn IN 1..2 LOOP
        RETURN QUERY
        SELECT DISTINCT coalesce(l.pid, 0)
        FROM pg_locks AS l
        WHERE l.locktype = 'transactionid' AND l.transactionid::text = ANY (numbers)
            AND l.mode = 'ExclusiveLock' AND l.granted;
        IF FOUND THEN
            RETURN;
        END IF;
        BEGIN
            -- Who only sees to it that the row stays, as a foreign key does, is in no one's way.
            numbers := ARRAY(
                SELECT m.xid::text
                FROM pg_get_multixact_members(find_lockers.xmax::xid) AS m
                WHERE m.mode <> 'keysh'
            );
        EXCEPTION
            WHEN OTHERS THEN
                EXIT; -- it was no list
        END;
    END LOOP;
    -- Rows have the last 32 of 64 bits.
    place := above - ((above - find_lockers.xmax::bigint) & 4294967295);
    IF place > 2 AND pg_xact_status(place::text::xid8) = 'in progress' THEN
        others := ARRAY(
            SELECT DISTINCT coalesce(l.pid, 0)
            FROM pg_locks AS l
            WHERE l.locktype = 'relation' AND l.relation = find_lockers.relation AND l.granted
                AND l.mode IN ('RowShareLock', 'RowExclusiveLock')
                AND l.database = (SELECT d.oid FROM pg_database AS d WHERE d.datname = current_database())
                AND l.pid IS DISTINCT FROM pg_backend_pid()
        );
        IF cardinality(others) = 1 THEN
            RETURN NEXT others[1];
        END IF;
    END IF;
END
$$;

CREATE FUNCTION hybrid_runner.fire_schedule(its hybrid_runner.schedules, moment timestamp with time zone) RETURNS TABLE(schedule text, tick timestamp with time zone, outcome text, ticks integer, job_id bigint, late interval)
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
#variable_conflict use_column
DECLARE
    due timestamptz := CASE WHEN its.next_at <= moment THEN its.next_at END;
    -- what is due: the ticks that are to have a job each, for how many each of these stands, and
    -- how many are to have none
    wanted timestamptz[] := '{}';
    weight integer := 1;
    is_missed boolean := false;
    dropping bigint := 0;
    -- what becomes of it: jobs now, or later, or none
    lives boolean;
    waiting timestamptz[] := coalesce(its.waiting_ticks, '{}');
    freed timestamptz[] := '{}';
    made timestamptz[] := '{}';
    room integer;
    chosen integer := 0;
    skipping bigint := 0;
    new_job bigint;
    live record;
BEGIN
    IF due IS NOT NULL THEN
        SELECT m.wanted, m.weight, m.is_missed, m.dropped, m.ticked_until
        INTO wanted, weight, is_missed, dropping, its.ticked_until
        FROM hybrid_runner.missed_ticks(its, moment) AS m;
        its.last_tick := coalesce(wanted[cardinality(wanted)], due);
        its.next_at := hybrid_runner.tick_after(its);
    END IF;

    -- A new statement: it sees whatever was committed before this row was locked.
    lives := EXISTS (SELECT FROM hybrid_runner.jobs AS j WHERE j.schedule = its.name);
    IF NOT lives AND cardinality(waiting) > 0 THEN
        -- The job has ended for which this one waited, and who ended it could not see that.
        freed := waiting[1:1];
        waiting := waiting[2:];
        lives := true;
    END IF;
    CASE
        WHEN cardinality(wanted) = 0 THEN
            NULL;
        WHEN its.overlap = 'allow' THEN
            made := wanted;
            chosen := cardinality(made);
        WHEN its.overlap = 'replace' THEN
            skipping := cardinality(wanted) - 1;
            wanted := wanted[cardinality(wanted):];
            IF lives AND freed = '{}' THEN
                IF waiting <> '{}' THEN -- so that the end of what is cancelled here frees nothing
                    UPDATE hybrid_runner.schedules AS s SET waiting_ticks = NULL WHERE s.name = its.name;
                END IF;
                -- What somebody has locked is about to end, or waited for.
                FOR live IN
                    SELECT j.id FROM hybrid_runner.jobs AS j WHERE j.schedule = its.name
                    ORDER BY j.id LIMIT 100 FOR UPDATE SKIP LOCKED
                LOOP
                    PERFORM hybrid_runner.cancel(live.id, 'replaced by the next tick of its schedule');
                END LOOP;
                lives := EXISTS (SELECT FROM hybrid_runner.jobs AS j WHERE j.schedule = its.name);
            END IF;
            -- One that waits, or has waited until now, stands for this one as well.
            IF freed <> '{}' OR waiting <> '{}' THEN
                skipping := skipping + 1;
            ELSE
                chosen := 1;
            END IF;
            IF NOT lives OR freed <> '{}' THEN
                made := wanted;
                freed := '{}';
                waiting := '{}';
            ELSE
                waiting := wanted;
            END IF;
        ELSE
            IF NOT lives THEN
                made := wanted[1:1];
                wanted := wanted[2:];
            END IF;
            room := CASE WHEN its.overlap <> 'queue' THEN 0 WHEN its.missed = 'all' THEN 1000 ELSE 1 END
                - cardinality(waiting);
            chosen := cardinality(made) + least(greatest(room, 0), cardinality(wanted));
            skipping := cardinality(made) + cardinality(wanted) - chosen;
            waiting := waiting || wanted[:greatest(room, 0)];
    END CASE;

    IF freed || made <> '{}' THEN
        new_job := hybrid_runner.store_ticks(its, freed || made);
    END IF;
    chosen := chosen * weight;
    skipping := skipping * weight;
    UPDATE hybrid_runner.schedules AS s SET
        next_at = its.next_at, ticked_until = its.ticked_until, last_tick = its.last_tick,
        last_job = coalesce(new_job, s.last_job), waiting_ticks = nullif(waiting, '{}'),
        fired = s.fired + CASE WHEN is_missed THEN 0 ELSE chosen END,
        caught_up = s.caught_up + CASE WHEN is_missed THEN chosen ELSE 0 END,
        skipped = s.skipped + skipping, dropped = s.dropped + dropping
    WHERE s.name = its.name;

    RETURN QUERY
    SELECT
        its.name, coalesce(its.last_tick, freed[1]), o.outcome, o.number::integer,
        CASE WHEN o.has_job AND made || freed <> '{}' THEN new_job END,
        moment - coalesce(due, moment)
    FROM (VALUES
        (CASE WHEN is_missed THEN 'caught_up' ELSE 'fired' END, chosen::bigint, true),
        ('skipped', skipping, false), ('dropped', dropping, false)
    ) AS o (outcome, number, has_job)
    WHERE o.number > 0;
END
$$;

CREATE FUNCTION hybrid_runner.fire_schedules(most integer DEFAULT 100) RETURNS TABLE(schedule text, tick timestamp with time zone, outcome text, ticks integer, job_id bigint, late interval)
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET enable_seqscan TO 'off'
    SET plan_cache_mode TO 'force_generic_plan'
    SET lock_timeout TO '100ms'
    AS $$
#variable_conflict use_column
DECLARE
    its hybrid_runner.schedules;
    moment timestamptz := hybrid_runner.tick_clock();
    coming timestamptz;
    names text[] := '{}';
    dues timestamptz[] := '{}';
    nexts timestamptz[] := '{}';
    others text[] := '{}';
    written text[];
    jobs bigint[];
    line text;
    began timestamptz;
BEGIN
    IF NOT EXISTS (SELECT FROM hybrid_runner.schedules) THEN
        RETURN;
    END IF;
    PERFORM hybrid_runner.keep_schedule_duty();
    PERFORM hybrid_runner.renew_ticks();
    FOR its IN
        SELECT s.*
        FROM (
            SELECT w.name FROM hybrid_runner.schedules AS w
            WHERE w.waiting_ticks IS NOT NULL AND w.paused_at IS NULL
                AND NOT EXISTS (SELECT FROM hybrid_runner.jobs AS j WHERE j.schedule = w.name)
            UNION
            SELECT d.name FROM hybrid_runner.schedules AS d
            WHERE d.next_at <= moment AND d.paused_at IS NULL
        ) AS due
        JOIN hybrid_runner.schedules AS s ON s.name = due.name
        WHERE s.paused_at IS NULL AND (s.next_at <= moment OR s.waiting_ticks IS NOT NULL)
            AND (NOT s.declared OR s.name IN (SELECT hybrid_runner.declared_now()))
        ORDER BY s.next_at
        LIMIT least(greatest(fire_schedules.most, 0), 1000)
        FOR UPDATE OF s SKIP LOCKED
    LOOP
        coming := moment;
        IF its.waiting_ticks IS NULL AND its.next_at BETWEEN moment - interval '1 minute' AND moment THEN
            its.ticked_until := its.next_at;
            its.last_tick := its.next_at;
            BEGIN
                coming := hybrid_runner.tick_after(its);
            EXCEPTION
                WHEN OTHERS THEN
                    NULL; -- which fire_schedule finds as well
            END;
        END IF;
        IF coming <= moment THEN
            others := others || its.name;
        ELSE
            names := names || its.name;
            dues := dues || its.next_at;
            nexts := nexts || coming;
        END IF;
    END LOOP;

    BEGIN
        -- A new statement: it sees whatever was committed before these rows were locked.
        WITH due AS (
            SELECT u.name, u.tick, u.coming FROM unnest(names, dues, nexts) AS u (name, tick, coming)
        ),
        made AS (
            INSERT INTO hybrid_runner.jobs AS j (
                kind, payload, queue, priority, run_at, max_attempts, timeout, traceparent,
                enqueued_by, schedule, tick
            )
            SELECT
                s.kind, s.payload, coalesce(s.queue, k.queue, 'default'), s.priority,
                CASE WHEN s.jitter = interval '0' THEN d.tick
                    ELSE hybrid_runner.jittered(s.name, d.tick, s.jitter) END,
                s.max_attempts, s.timeout, NULL, s.made_by, s.name, d.tick
            FROM due AS d
            JOIN hybrid_runner.schedules AS s ON s.name = d.name
            LEFT JOIN hybrid_runner.kinds AS k ON k.name = s.kind
            WHERE s.overlap = 'allow' OR NOT EXISTS (
                SELECT FROM hybrid_runner.jobs AS live WHERE live.schedule = d.name
            )
            RETURNING j.id, j.schedule
        ),
        done AS (
            UPDATE hybrid_runner.schedules AS s SET
                next_at = d.coming, ticked_until = d.tick, last_tick = d.tick,
                last_job = coalesce(m.id, s.last_job),
                fired = s.fired + CASE WHEN m.id IS NULL THEN 0 ELSE 1 END,
                skipped = s.skipped + CASE WHEN m.id IS NULL THEN 1 ELSE 0 END
            FROM due AS d
            LEFT JOIN made AS m ON m.schedule = d.name
            WHERE s.name = d.name AND (m.id IS NOT NULL OR s.overlap = 'skip')
            RETURNING s.name, m.id
        )
        SELECT array_agg(d.name), array_agg(d.id) INTO written, jobs FROM done AS d;
    EXCEPTION
        WHEN data_exception OR integrity_constraint_violation OR plpgsql_error
            OR program_limit_exceeded OR syntax_error_or_access_rule_violation THEN
            written := '{}';
            jobs := '{}';
    END;
    RETURN QUERY
    SELECT w.name, d.tick, CASE WHEN w.id IS NULL THEN 'skipped' ELSE 'fired' END, 1, w.id,
        moment - d.tick
    FROM unnest(written, jobs) AS w (name, id)
    JOIN unnest(names, dues) AS d (name, tick) ON d.name = w.name;

    began := clock_timestamp();
    FOR its IN
        SELECT s.* FROM unnest(names || others) AS u (name)
        JOIN hybrid_runner.schedules AS s ON s.name = u.name
        WHERE u.name <> ALL (coalesce(written, '{}'))
        ORDER BY s.next_at
    LOOP
        -- Hours may have been missed, of many schedules: a caller who gave up would come again, and
        -- give up again. What is left is due still.
        EXIT WHEN clock_timestamp() > began + interval '1 second';
        BEGIN
            RETURN QUERY
            SELECT f.schedule, f.tick, f.outcome, f.ticks, f.job_id, f.late
            FROM hybrid_runner.fire_schedule(its, moment) AS f;
        EXCEPTION
            WHEN lock_not_available THEN
                NULL; -- it is due still
            WHEN OTHERS THEN
                -- What is wrong with the row, and not with the server or the moment, would be wrong
                -- again: it must not keep others from firing.
                IF left(SQLSTATE, 2) NOT IN ('21', '22', '23', '39', '42', '54', 'P0') THEN
                    RAISE;
                END IF;
                GET STACKED DIAGNOSTICS line = MESSAGE_TEXT;
                UPDATE hybrid_runner.schedules AS s SET
                    paused_at = clock_timestamp(), dropped = s.dropped + 1,
                    note = 'paused, since it could not fire: '
                        || left(regexp_replace(line, '[^[:print:]]', ' ', 'g'), 500)
                WHERE s.name = its.name;
                -- Without a next tick it was one that waited.
                RETURN QUERY SELECT its.name, coalesce(its.next_at, its.waiting_ticks[1]), 'dropped',
                    1, NULL::bigint, moment - coalesce(its.next_at, moment);
        END;
    END LOOP;
END
$$;

CREATE FUNCTION hybrid_runner.free_tick(schedule text, id bigint) RETURNS bigint
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET enable_seqscan TO 'off'
    AS $$
DECLARE
    its hybrid_runner.schedules;
    made bigint;
BEGIN
    SELECT s.* INTO its FROM hybrid_runner.schedules AS s
    WHERE s.name = free_tick.schedule AND (s.overlap IN ('queue', 'replace') OR s.waiting_ticks IS NOT NULL)
    FOR UPDATE SKIP LOCKED;
    IF NOT FOUND THEN
        IF EXISTS (
            SELECT FROM hybrid_runner.schedules AS s
            WHERE s.name = free_tick.schedule AND s.overlap IN ('queue', 'replace')
        ) THEN
            PERFORM hybrid_runner.notify_if_room('hybrid_runner.~ticks', '');
        END IF;
    ELSIF its.waiting_ticks IS NOT NULL AND its.paused_at IS NULL
        AND (NOT its.declared OR its.name IN (SELECT hybrid_runner.declared_now()))
        AND NOT EXISTS (SELECT FROM hybrid_runner.jobs AS j WHERE j.schedule = its.name) THEN
        made := hybrid_runner.store_ticks(its, its.waiting_ticks[1:1]);
        UPDATE hybrid_runner.schedules AS s SET
            waiting_ticks = nullif(its.waiting_ticks[2:], '{}'), last_job = made
        WHERE s.name = its.name;
    END IF;
    RETURN free_tick.id;
END
$$;

CREATE FUNCTION hybrid_runner.give_free_keys() RETURNS integer
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET plan_cache_mode TO 'force_generic_plan'
    SET enable_seqscan TO 'off'
    AS $$
DECLARE
    free text[];
BEGIN
    SELECT array_agg(substr(asleep.key, 2)) INTO free
    FROM hybrid_runner.queues AS q
    CROSS JOIN generate_series(0, 9) AS lane (priority)
    CROSS JOIN LATERAL (
        SELECT j.key
        FROM hybrid_runner.jobs AS j
        WHERE j.state = 'queued' AND j.queue = q.name AND j.priority = lane.priority
            AND j.run_at = 'infinity' AND starts_with(j.key, '>')
            AND NOT EXISTS (SELECT FROM hybrid_runner.jobs AS h WHERE h.key = substr(j.key, 2))
        LIMIT 1000
    ) AS asleep;
    RETURN CASE WHEN free IS NULL THEN 0 ELSE hybrid_runner.pass_keys(free) END;
END
$$;

CREATE FUNCTION hybrid_runner.has_room(id bigint, kind text, items jsonb, max_items integer) RETURNS boolean
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
DECLARE
    job hybrid_runner.jobs;
    its jsonb;
BEGIN
    SELECT j.* INTO job FROM hybrid_runner.jobs AS j WHERE j.id = has_room.id;
    IF NOT FOUND OR job.kind <> has_room.kind OR job.began_at IS NOT NULL
        OR (job.state = 'running' OR job.attempt > 0) AND NOT starts_with(job.key, '>') THEN
        RETURN false;
    END IF;
    its := hybrid_runner.items_of(job.payload);
    -- Two lists in one have as many brackets and commas as the two.
    RETURN jsonb_array_length(its) + jsonb_array_length(items) <= max_items
        AND octet_length(its::text) + octet_length(items::text) <= 1048576;
END
$$;

CREATE FUNCTION hybrid_runner.horizon_age() RETURNS double precision
    LANGUAGE sql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
    SELECT coalesce(
        greatest(0, extract(epoch FROM clock_timestamp() - min(held.since))), 0
    )::double precision
    FROM (
        SELECT a.xact_start AS since
        FROM pg_stat_activity AS a
        WHERE a.datname = current_database() AND a.backend_type = 'client backend'
            AND (a.backend_xmin IS NOT NULL OR a.backend_xid IS NOT NULL)
            AND a.pid <> pg_backend_pid()
        UNION ALL
        SELECT p.prepared FROM pg_prepared_xacts AS p WHERE p.database = current_database()
        UNION ALL
        SELECT min(h.noted_at)
        FROM hybrid_runner.xid_history AS h
        JOIN (
            SELECT s.xmin::text::bigint AS id FROM pg_replication_slots AS s
            UNION ALL
            SELECT s.catalog_xmin::text::bigint FROM pg_replication_slots AS s
            UNION ALL
            SELECT r.backend_xmin::text::bigint FROM pg_stat_replication AS r
        ) AS kept ON ((h.next_xid - kept.id) & 4294967295) BETWEEN 1 AND 2147483647
    ) AS held (since)
$$;

CREATE FUNCTION hybrid_runner.is_cron_day(day date, days integer[], weekdays integer[], either_will_do boolean) RETURNS boolean
    LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
DECLARE
    number integer := extract(day FROM day);
    weekday integer := extract(dow FROM day);
    length integer := extract(day FROM (date_trunc('month', day) + interval '1 month' - interval '1 day'));
    on_day boolean;
    on_weekday boolean;
BEGIN
    on_day := number = ANY (days) OR (32 = ANY (days) AND number = length)
        OR (33 = ANY (days) AND weekday BETWEEN 1 AND 5
            AND (number = length OR weekday = 5 AND number >= length - 2));
    -- The working day nearest to the 15th is that day, or the Friday before, or the Monday after;
    -- one of the same month.
    IF NOT on_day AND weekday BETWEEN 1 AND 5 THEN
        on_day := 100 + number = ANY (days)
            OR weekday = 5 AND number < length AND 101 + number = ANY (days)
            OR weekday = 5 AND number + 2 = length AND 102 + number = ANY (days)
            OR weekday = 1 AND number > 1 AND 99 + number = ANY (days)
            OR weekday = 1 AND number = 3 AND 101 = ANY (days);
    END IF;
    on_weekday := weekday = ANY (weekdays) OR 10 * ((number + 6) / 7) + weekday = ANY (weekdays)
        OR (90 + weekday = ANY (weekdays) AND number + 7 > length);
    RETURN CASE WHEN either_will_do THEN on_day OR on_weekday ELSE on_day AND on_weekday END;
END
$$;

CREATE FUNCTION hybrid_runner.items_of(payload jsonb) RETURNS jsonb
    LANGUAGE sql IMMUTABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
    SELECT CASE WHEN jsonb_typeof(payload) = 'array' THEN payload ELSE jsonb_build_array(payload) END
$$;

CREATE FUNCTION hybrid_runner.jittered(name text, tick timestamp with time zone, jitter interval) RETURNS timestamp with time zone
    LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
BEGIN
    IF jitter = interval '0' THEN
        RETURN tick;
    END IF;
    RETURN tick + make_interval(secs => floor(1000 * date_part('epoch', jitter) * (
        ('x' || encode(substr(sha256(convert_to(
            name || ' ' || extract(epoch FROM tick)::numeric(20, 6)::text, 'UTF8')), 1, 6), 'hex'))::bit(48)::bigint
        / 281474976710656.0::float8)) / 1000);
END
$$;

CREATE FUNCTION hybrid_runner.join_key(columns jsonb, payload jsonb, data jsonb, collects boolean, max_wait interval, max_items integer) RETURNS TABLE(id bigint, outcome text)
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
#variable_conflict use_column
DECLARE
    new hybrid_runner.jobs := jsonb_populate_record(NULL::hybrid_runner.jobs, columns);
    more jsonb := CASE WHEN collects THEN hybrid_runner.items_of(join_key.payload)
        ELSE join_key.payload END;
    last hybrid_runner.jobs;
    its_queue text;
    due timestamptz;
BEGIN
    FOR tries IN 1..20 LOOP
        SELECT j.* INTO last FROM hybrid_runner.jobs AS j
        WHERE j.id = (SELECT hybrid_runner.last_in_line(new.key));
        IF NOT collects AND (last.state = 'queued' OR starts_with(last.key, '>'))
            OR collects AND hybrid_runner.has_room(last.id, new.kind, more, max_items) THEN
            -- One's own alone, as enqueue_job() has it.
            IF last.enqueued_by <> session_user AND NOT has_column_privilege(
                session_user, 'hybrid_runner.jobs', 'payload', 'UPDATE') THEN
                RAISE EXCEPTION 'key % is held by job %, which % enqueued: to change jobs of other '
                    'logins takes the right UPDATE (payload) on hybrid_runner.jobs',
                    quote_literal(last.key), last.id, quote_ident(last.enqueued_by)
                    USING ERRCODE = 'insufficient_privilege';
            END IF;
            -- As it is by now: it may have begun, or be full, or have the key that it waited for.
            SELECT j.* INTO last
            FROM hybrid_runner.jobs AS j
            WHERE j.id = last.id AND j.key = last.key
                AND (j.state = 'queued' OR starts_with(j.key, '>'))
            FOR UPDATE;
            CONTINUE WHEN NOT FOUND
                OR collects AND NOT hybrid_runner.has_room(last.id, new.kind, more, max_items);
            due := CASE WHEN max_wait IS NULL THEN new.run_at ELSE least(
                new.run_at, greatest(last.created_at + max_wait, clock_timestamp())) END;
            its_queue := CASE WHEN collects THEN last.queue ELSE new.queue END;
            -- A worker that is about to ask whether it may begin has an older claim then, and asks
            -- in vain.
            IF collects THEN
                UPDATE hybrid_runner.jobs AS j SET
                    payload = hybrid_runner.items_of(j.payload) || more,
                    priority = least(j.priority, new.priority), run_at = due, state = 'queued',
                    attempt = 0, claim = NULL, worker_id = NULL, started_at = NULL,
                    version = j.version + 1
                WHERE j.id = last.id;
            ELSE
                UPDATE hybrid_runner.jobs AS j SET
                    kind = new.kind, payload = more, queue = new.queue,
                    priority = new.priority, run_at = due, max_attempts = new.max_attempts,
                    timeout = new.timeout, finish_by = new.finish_by, start_by = new.start_by,
                    data = join_key.data, traceparent = new.traceparent,
                    max_snoozes = new.max_snoozes, max_duration = new.max_duration,
                    finish_within = new.finish_within, state = 'queued', attempt = 0,
                    snoozes = 0, began_at = NULL, waits_for = NULL, errors = NULL,
                    history = NULL, claim = NULL, worker_id = NULL, started_at = NULL,
                    version = j.version + 1
                WHERE j.id = last.id;
            END IF;
            PERFORM hybrid_runner.ring(its_queue, due);
            PERFORM hybrid_runner.publish(its_queue, new.kind, last.id);
            id := last.id;
            outcome := CASE WHEN collects THEN 'collected' ELSE 'replaced' END;
            RETURN NEXT;
            RETURN;
        END IF;

        IF octet_length(last.key) > 511 THEN
            RAISE EXCEPTION 'too many jobs wait for key %', quote_literal(new.key)
                USING ERRCODE = 'program_limit_exceeded';
        END IF;
        INSERT INTO hybrid_runner.jobs AS j
            (kind, payload, queue, key, priority, run_at, max_attempts, timeout, finish_by,
            start_by, data, traceparent, max_snoozes, max_duration, finish_within)
        VALUES (new.kind, more, new.queue, coalesce('>' || last.key, new.key), new.priority, new.run_at,
            new.max_attempts, new.timeout, new.finish_by, new.start_by, join_key.data,
            new.traceparent, new.max_snoozes, new.max_duration, new.finish_within)
        ON CONFLICT (key) WHERE key IS NOT NULL DO NOTHING
        RETURNING j.id INTO id;
        CONTINUE WHEN NOT FOUND;
        outcome := CASE WHEN last.id IS NULL THEN 'inserted' ELSE 'follows' END;
        RETURN NEXT;
        RETURN;
    END LOOP;
    RAISE EXCEPTION 'key % changes hands too fast: try again', quote_literal(new.key)
        USING ERRCODE = 'serialization_failure';
END
$$;

CREATE FUNCTION hybrid_runner.join_sleepers(queues text[]) RETURNS void
    LANGUAGE sql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
    INSERT INTO hybrid_runner.sleepers AS s (queue, pid, is_asleep)
    SELECT DISTINCT q.name, pg_backend_pid(), true FROM unnest(queues) AS q (name)
    ON CONFLICT ON CONSTRAINT sleepers_pkey DO UPDATE SET is_asleep = true WHERE NOT s.is_asleep
$$;

CREATE FUNCTION hybrid_runner.keep(state text, keep interval, kind text DEFAULT ''::text) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
#variable_conflict use_column
BEGIN
    IF keep.state IS NULL OR keep.state NOT IN ('completed', 'failed', 'cancelled') THEN
        RAISE EXCEPTION 'state must be completed, failed or cancelled, not %',
            coalesce(keep.state, 'NULL')
            USING ERRCODE = 'invalid_parameter_value';
    ELSIF keep.kind IS NULL OR length(keep.kind) > 128 THEN
        RAISE EXCEPTION 'kind must be 0 to 128 characters'
            USING ERRCODE = 'invalid_parameter_value';
    ELSIF keep.keep <= '0' OR keep.keep > '3653 days' THEN
        RAISE EXCEPTION 'keep must be more than zero and at most ten years, not %', keep.keep
            USING ERRCODE = 'invalid_parameter_value';
    ELSIF keep.keep IS NOT NULL THEN
        INSERT INTO hybrid_runner.retention AS r (state, kind, keep)
        VALUES (keep.state::hybrid_runner.job_state, keep.kind, keep.keep)
        ON CONFLICT (state, kind) DO UPDATE SET keep = excluded.keep WHERE r.keep <> excluded.keep;
    ELSIF keep.kind = '' THEN
        RAISE EXCEPTION 'keep is missing: only the exception of a kind can be removed'
            USING ERRCODE = 'invalid_parameter_value';
    ELSE
        DELETE FROM hybrid_runner.retention AS r
        WHERE r.state = keep.state::hybrid_runner.job_state AND r.kind = keep.kind;
    END IF;
END
$$;

CREATE FUNCTION hybrid_runner.keep_schedule_duty() RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET lock_timeout TO '50ms'
    AS $$
BEGIN
    IF EXISTS (SELECT FROM hybrid_runner.duties AS d WHERE d.name = 'schedules') THEN
        RETURN;
    END IF;
    INSERT INTO hybrid_runner.duties (name, every) VALUES ('schedules', '30 seconds')
    ON CONFLICT (name) DO NOTHING;
EXCEPTION
    WHEN lock_not_available THEN
        NULL; -- in a transaction that is open
END
$$;

CREATE FUNCTION hybrid_runner.keep_source_duty() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
BEGIN
    IF EXISTS (SELECT FROM hybrid_runner.sources) THEN
        INSERT INTO hybrid_runner.duties (name, every) VALUES ('sources', '15 seconds')
        ON CONFLICT (name) DO NOTHING;
        IF TG_OP = 'UPDATE' THEN
            UPDATE hybrid_runner.late_rows AS l SET next_try_at = clock_timestamp()
            WHERE l.is_refused;
        END IF;
    ELSE
        DELETE FROM hybrid_runner.duties AS d WHERE d.name = 'sources';
    END IF;
    PERFORM hybrid_runner.notify_if_room('hybrid_runner.~sources', 'sources');
    RETURN NULL;
END
$$;

CREATE FUNCTION hybrid_runner.key_of(kind text, payload jsonb, VARIADIC names text[] DEFAULT '{}'::text[]) RETURNS text
    LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
DECLARE
    wrong text := CASE
        WHEN kind IS NULL OR payload IS NULL THEN 'a key is made of a kind and a payload, not of NULL'
        WHEN names IS NULL OR array_position(names, NULL) IS NOT NULL OR '' = ANY (names)
            THEN 'a name of a member must not be empty'
        WHEN cardinality(names) > 0 AND jsonb_typeof(payload) <> 'object'
            THEN format('payload must be an object to take a key of its members, not %s',
                jsonb_typeof(payload))
        WHEN cardinality(names) > 0 AND NOT payload ?| names
            THEN format('payload has none of these members: %s',
                left(array_to_string(names, ', '), 200))
    END;
    value jsonb := payload;
BEGIN
    IF wrong IS NOT NULL THEN
        RAISE EXCEPTION '%', wrong USING ERRCODE = 'invalid_parameter_value';
    END IF;
    IF cardinality(names) > 0 THEN
        SELECT jsonb_object_agg(n.name, coalesce(payload -> n.name, 'null'))
        INTO value
        FROM unnest(names) AS n (name);
    END IF;
    RETURN kind || ':' || encode(sha256(convert_to(
        -- texts are left as they are, and what is a number loses its last zeros
        regexp_replace(value::text, '("(?:[^"\\]|\\.)*"|\.[0-9]*[1-9])0*|\.0+', '\1', 'g'),
        'UTF8')), 'hex');
END
$$;

CREATE FUNCTION hybrid_runner.last_in_line(key text) RETURNS bigint
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
#variable_conflict use_column
DECLARE
    start text := last_in_line.key;
    last text;
    its_id bigint;
BEGIN
    LOOP
        SELECT j.key, j.id INTO last, its_id
        FROM hybrid_runner.jobs AS j
        WHERE j.key = ANY (ARRAY(SELECT repeat('>', n) || start FROM generate_series(0, 16) AS n))
        ORDER BY octet_length(j.key) DESC
        LIMIT 1;
        EXIT WHEN last IS NULL OR octet_length(last) < octet_length(start) + 16;
        start := last;
    END LOOP;
    RETURN its_id;
END
$$;

CREATE FUNCTION hybrid_runner.leave_bell(queue text, worker_id text, is_muted boolean) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
BEGIN
    PERFORM hybrid_runner.notify_if_room('hybrid_runner.' || queue, 'gone ' || worker_id);
    IF is_muted THEN
        PERFORM setval(q.doorbell, 0) FROM hybrid_runner.queues AS q
        WHERE q.name = leave_bell.queue;
        PERFORM hybrid_runner.notify_if_room('hybrid_runner.' || queue, 'help');
    END IF;
END
$$;

CREATE FUNCTION hybrid_runner.leave_sleepers() RETURNS void
    LANGUAGE sql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
    DELETE FROM hybrid_runner.sleepers AS s
    WHERE (s.queue, s.pid) IN (
        SELECT o.queue, o.pid FROM hybrid_runner.sleepers AS o
        WHERE o.pid = pg_backend_pid()
            OR NOT EXISTS (SELECT FROM pg_stat_get_activity(NULL) AS a WHERE a.pid = o.pid)
        FOR UPDATE SKIP LOCKED -- others may be deleting them at this moment
    )
$$;

CREATE FUNCTION hybrid_runner.let_go(id bigint, key text, schedule text) RETURNS bigint
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
BEGIN
    IF key IS NOT NULL AND EXISTS (SELECT FROM hybrid_runner.jobs AS j WHERE j.key = '>' || let_go.key) THEN
        PERFORM hybrid_runner.pass_keys(ARRAY[key]);
    END IF;
    IF schedule IS NOT NULL THEN
        RETURN hybrid_runner.free_tick(schedule, id);
    END IF;
    RETURN id;
END
$$;

CREATE FUNCTION hybrid_runner.make_archive_partitions(days_ahead integer DEFAULT 7) RETURNS integer
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET "TimeZone" TO 'UTC'
    SET "DateStyle" TO 'ISO'
    SET lock_timeout TO '2s'
    AS $$
DECLARE
    wanted record;
    opens timestamptz;
    closes timestamptz;
    made integer := 0;
BEGIN
    PERFORM FROM hybrid_runner.locks AS l WHERE l.name = 'partitions' FOR UPDATE;
    FOR wanted IN
        -- As fine as what is forgotten first needs, and no finer: each partition costs whoever
        -- looks for an id.
        SELECT s.half, w.unit, now() + least(make_interval(days => days_ahead), w.ahead) AS until
        FROM hybrid_runner.archive_halves AS s
        JOIN (
            VALUES ('hour', interval '6 hours'), ('day', '3 days'), ('month', '1 month')
        ) AS w (unit, ahead) ON w.unit = CASE
            WHEN s.shortest < '12 hours' THEN 'hour'
            WHEN s.shortest < '60 days' THEN 'day'
            ELSE 'month'
        END
    LOOP
        SELECT coalesce(max(p.upper), date_trunc(wanted.unit, now())) INTO opens
        FROM hybrid_runner.archive_partitions AS p
        WHERE p.half = wanted.half AND p.upper > date_trunc(wanted.unit, now());
        WHILE opens <= wanted.until LOOP
            closes := date_trunc(wanted.unit, opens) + ('1 ' || wanted.unit)::interval;
            PERFORM hybrid_runner.add_archive_partition(wanted.half, opens, closes);
            opens := closes;
            made := made + 1;
        END LOOP;
    END LOOP;

    -- For look-ups by id: hourly for a while, then daily, as far back as anything is kept.
    INSERT INTO hybrid_runner.id_history (next_id)
    SELECT coalesce(
        pg_sequence_last_value(pg_get_serial_sequence('hybrid_runner.jobs', 'id')::regclass), 0) + 1
    WHERE NOT EXISTS (
        SELECT FROM hybrid_runner.id_history AS h
        WHERE h.noted_at > clock_timestamp() - interval '50 minutes');
    DELETE FROM hybrid_runner.id_history AS h
    WHERE h.noted_at < clock_timestamp() - interval '7 days' AND (
        EXISTS (SELECT FROM hybrid_runner.id_history AS e
            WHERE date_trunc('day', e.noted_at) = date_trunc('day', h.noted_at)
                AND e.noted_at < h.noted_at)
        OR h.noted_at < clock_timestamp() - (
            SELECT max(r.keep) + interval '1 month' FROM hybrid_runner.retention AS r));
    RETURN made;
END
$$;

CREATE FUNCTION hybrid_runner.missed_ticks(its hybrid_runner.schedules, moment timestamp with time zone, OUT wanted timestamp with time zone[], OUT weight integer, OUT is_missed boolean, OUT dropped bigint, OUT ticked_until timestamp with time zone) RETURNS record
    LANGUAGE plpgsql STABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
DECLARE
    due timestamptz := its.next_at;
    in_time timestamptz := moment - interval '1 minute';
    last timestamptz;
    most integer := 1000;
BEGIN
    weight := 1;
    dropped := 0;
    ticked_until := due;
    its.ticked_until := due;
    its.last_tick := due;
    is_missed := due < in_time OR coalesce(hybrid_runner.tick_after(its) <= moment, false);
    IF NOT is_missed THEN
        wanted := ARRAY[due];
        RETURN;
    END IF;
    ticked_until := moment;
    IF its.missed = 'all' THEN -- 64 MiB of payloads at once are enough
        most := least(most, 67108864 / octet_length(its.payload::text));
    END IF;
    wanted := hybrid_runner.recent_ticks(
        its, greatest(due, least(moment - its.catch_up, in_time)), moment, most);
    last := wanted[cardinality(wanted)];
    IF its.missed = 'none' THEN
        is_missed := false;
        wanted := CASE WHEN last >= in_time THEN ARRAY[last] ELSE '{}' END;
    ELSIF its.missed = 'one' AND last IS NOT NULL THEN
        weight := cardinality(wanted);
        wanted := ARRAY[last];
        dropped := hybrid_runner.count_ticks(its, due, last) - (weight - 1);
        RETURN;
    END IF;
    dropped := hybrid_runner.count_ticks(
        its, due, coalesce(wanted[1], moment + interval '1 microsecond'));
END
$$;

CREATE FUNCTION hybrid_runner.missing_jobs(query text, key_parts text[], most integer) RETURNS TABLE(key text, payload text, data text)
    LANGUAGE plpgsql STABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $_$
BEGIN
    RETURN QUERY EXECUTE format(
        $sql$
        SELECT w.key, w.payload, w.data
        FROM (
            SELECT
                m.key, m.payload, m.data,
                sum(octet_length(m.payload) + coalesce(octet_length(m.data), 0)) OVER (
                    ROWS UNBOUNDED PRECEDING
                ) AS bytes
            FROM (
                SELECT
                    k.key, (r.columns - 'data')::text AS payload,
                    nullif(r.columns -> 'data', 'null')::text AS data
                FROM (SELECT to_jsonb(found.*) AS columns FROM (
%s
                ) AS found) AS r
                CROSS JOIN LATERAL (
                    SELECT
                        CASE WHEN count(p.text) = count(*) THEN string_agg(p.text, '' ORDER BY p.n) END
                    FROM (
                        SELECT
                            u.n, CASE WHEN u.n %% 2 = 1 THEN u.part ELSE r.columns ->> u.part END AS text
                        FROM unnest($1) WITH ORDINALITY AS u (part, n)
                    ) AS p
                ) AS k (key)
                WHERE NOT EXISTS (SELECT FROM hybrid_runner.jobs AS j WHERE j.key = k.key)
                ORDER BY random()
                LIMIT $2
            ) AS m
        ) AS w
        WHERE w.bytes <= 33554432
        $sql$,
        missing_jobs.query
    ) USING missing_jobs.key_parts, missing_jobs.most;

END
$_$;

CREATE FUNCTION hybrid_runner.mute_bell(queue text, milliseconds integer, mode text, leave_sleepers boolean) RETURNS boolean
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
DECLARE
    its_bell regclass;
BEGIN
    SELECT q.doorbell INTO its_bell FROM hybrid_runner.queues AS q WHERE q.name = mute_bell.queue;
    IF NOT FOUND THEN -- somebody has deleted it
        its_bell := hybrid_runner.open_queue(mute_bell.queue);
    END IF;
    IF leave_sleepers THEN
        UPDATE hybrid_runner.sleepers AS s SET is_asleep = false
        WHERE s.queue = mute_bell.queue AND s.pid = pg_backend_pid() AND s.is_asleep;
    END IF;
    PERFORM setval(its_bell, (extract(epoch FROM clock_timestamp()) * 1000)::bigint + milliseconds);
    -- Muted first, asked afterwards, with a newer snapshot: a worker that falls asleep has
    -- committed its row before it opens the bell, so either the row is seen here or this mute is
    -- undone. The row of a session that has ended says nothing.
    IF mode = 'looking' OR NOT EXISTS (
        SELECT FROM hybrid_runner.sleepers AS s
        WHERE s.queue = mute_bell.queue AND s.is_asleep AND s.pid <> pg_backend_pid()
            AND EXISTS (SELECT FROM pg_stat_get_activity(s.pid))
    ) THEN
        RETURN false;
    END IF;
    IF mode = 'full' THEN
        PERFORM setval(its_bell, 0);
    END IF;
    PERFORM hybrid_runner.notify_if_room('hybrid_runner.' || queue, 'help');
    RETURN true;
END
$$;

CREATE FUNCTION hybrid_runner.nearest_word(given text, words text[]) RETURNS text
    LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
DECLARE
    bare text := regexp_replace(lower(left(given, 100)), '[^a-z0-9+]', '', 'g');
    word text;
    other text;
    at integer;
    best text;
    best_rank integer := 9;
    rank integer;
BEGIN
    IF length(bare) < 2 THEN
        RETURN NULL;
    END IF;
    FOREACH word IN ARRAY nearest_word.words LOOP
        other := regexp_replace(lower(word), '[^a-z0-9+]', '', 'g');
        rank := 9;
        IF other = bare THEN
            rank := 1;
        ELSIF length(bare) >= 4 AND lower(word) LIKE '%/' || replace(lower(left(given, 100)), ' ', '\_') THEN
            rank := 2;
        ELSIF abs(length(other) - length(bare)) <= 1 THEN
            -- the first place in which they differ; behind it one edit has to make them equal
            at := 1;
            WHILE substr(other, at, 1) = substr(bare, at, 1) AND at <= length(bare) LOOP
                at := at + 1;
            END LOOP;
            IF substr(other, at) = substr(bare, at + 1) OR substr(other, at + 1) = substr(bare, at)
                OR substr(other, at + 1) = substr(bare, at + 1)
                OR (substr(other, at, 1) = substr(bare, at + 1, 1)
                    AND substr(other, at + 1, 1) = substr(bare, at, 1)
                    AND substr(other, at + 2) = substr(bare, at + 2)) THEN
                rank := 3;
            END IF;
        END IF;
        IF rank < best_rank THEN
            best := word;
            best_rank := rank;
        END IF;
    END LOOP;
    RETURN best;
END
$$;

CREATE FUNCTION hybrid_runner.next_fire(cron text, timezone text, after timestamp with time zone) RETURNS timestamp with time zone
    LANGUAGE plpgsql STABLE SECURITY DEFINER PARALLEL SAFE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
BEGIN
    PERFORM hybrid_runner.check_zone(next_fire.timezone);
    RETURN (hybrid_runner.cron_ticks(next_fire.cron, next_fire.timezone, next_fire.after, NULL, 1))[1];
END
$$;

CREATE FUNCTION hybrid_runner.next_on_clock(clock timestamp without time zone, minutes integer[], hours integer[], days integer[], months integer[], weekdays integer[], either_will_do boolean) RETURNS timestamp without time zone
    LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE
    AS $$
DECLARE
    day date := clock::date;
    -- 29 February on a given weekday, across a year like 2100: forty years. Most days are passed by
    -- month.
    last date := day + 14976;
    from_hour integer := extract(hour FROM clock);
    from_minute integer := extract(minute FROM clock);
    are_plain boolean := days[pg_catalog.cardinality(days)] <= 31
        AND weekdays[pg_catalog.cardinality(weekdays)] <= 6;
    is_on boolean;
    at_hour integer;
    at_minute integer;
BEGIN
    IF NOT either_will_do AND days[1] > 29 AND days[1] <= 31 AND NOT months && ARRAY[1, 3, 5, 7, 8, 10, 12]
        AND (days[1] = 31 OR NOT months && ARRAY[4, 6, 9, 11]) THEN
        RETURN NULL;
    END IF;
    WHILE day <= last LOOP
        IF NOT extract(month FROM day)::integer = ANY (months) THEN
            day := (pg_catalog.date_trunc('month', day::pg_catalog.timestamp) + interval '1 month')::date;
            from_hour := 0;
            from_minute := 0;
            CONTINUE;
        END IF;
        is_on := CASE
            WHEN NOT are_plain THEN hybrid_runner.is_cron_day(day, days, weekdays, either_will_do)
            WHEN either_will_do THEN extract(day FROM day)::integer = ANY (days)
                OR extract(dow FROM day)::integer = ANY (weekdays)
            ELSE extract(day FROM day)::integer = ANY (days)
                AND extract(dow FROM day)::integer = ANY (weekdays)
        END;
        IF is_on THEN
            FOREACH at_hour IN ARRAY hours LOOP
                CONTINUE WHEN at_hour < from_hour;
                IF at_hour > from_hour THEN
                    from_minute := 0;
                END IF;
                CONTINUE WHEN minutes[pg_catalog.cardinality(minutes)] < from_minute;
                FOREACH at_minute IN ARRAY minutes LOOP
                    EXIT WHEN at_minute >= from_minute;
                END LOOP;
                RETURN day + pg_catalog.make_time(at_hour, at_minute, 0);
            END LOOP;
        END IF;
        day := day + 1;
        from_hour := 0;
        from_minute := 0;
    END LOOP;
    RETURN NULL;
END
$$;

CREATE FUNCTION hybrid_runner.next_tick(past boolean DEFAULT true) RETURNS interval
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET enable_seqscan TO 'off'
    AS $$
DECLARE
    coming timestamptz;
    since timestamptz := CASE WHEN next_tick.past THEN '-infinity' ELSE hybrid_runner.tick_clock() END;
BEGIN
    IF NOT EXISTS (SELECT FROM hybrid_runner.schedules) THEN
        RETURN NULL;
    END IF;
    IF next_tick.past AND EXISTS (
        SELECT FROM hybrid_runner.schedules AS s
        WHERE s.waiting_ticks IS NOT NULL AND s.paused_at IS NULL
            AND NOT EXISTS (SELECT FROM hybrid_runner.jobs AS j WHERE j.schedule = s.name)
            AND (NOT s.declared OR s.name IN (SELECT hybrid_runner.declared_now()))
    ) THEN
        RETURN interval '0';
    END IF;
    SELECT s.next_at INTO coming
    FROM hybrid_runner.schedules AS s
    WHERE s.paused_at IS NULL AND s.next_at > since
        AND (NOT s.declared OR s.name IN (SELECT hybrid_runner.declared_now()))
    ORDER BY s.next_at
    LIMIT 1;
    RETURN coming - hybrid_runner.tick_clock();
END
$$;

CREATE FUNCTION hybrid_runner.next_ticks(cron text, timezone text DEFAULT 'UTC'::text, most integer DEFAULT 5, after timestamp with time zone DEFAULT now()) RETURNS SETOF timestamp with time zone
    LANGUAGE plpgsql STABLE SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
BEGIN
    PERFORM hybrid_runner.check_zone(next_ticks.timezone);
    RETURN QUERY SELECT t.tick FROM unnest(hybrid_runner.cron_ticks(
        next_ticks.cron, next_ticks.timezone, next_ticks.after, NULL,
        least(greatest(next_ticks.most, 0), 1000))) AS t (tick);
END
$$;

CREATE FUNCTION hybrid_runner.next_ticks_of(name text, most integer DEFAULT 5) RETURNS TABLE(tick timestamp with time zone, run_at timestamp with time zone)
    LANGUAGE plpgsql STABLE SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
#variable_conflict use_column
DECLARE
    its hybrid_runner.schedules;
BEGIN
    SELECT s.* INTO its FROM hybrid_runner.schedules AS s
    WHERE s.name = next_ticks_of.name AND (s.made_by = session_user OR has_column_privilege(
        session_user, 'hybrid_runner.schedules', 'payload', 'SELECT'));
    IF its.paused_at IS NOT NULL THEN
        RETURN;
    END IF;
    FOR place IN 1..least(next_ticks_of.most, 1000) LOOP
        EXIT WHEN its.next_at IS NULL;
        tick := its.next_at;
        run_at := hybrid_runner.jittered(its.name, its.next_at, its.jitter);
        RETURN NEXT;
        its.ticked_until := its.next_at;
        its.last_tick := its.next_at;
        its.next_at := hybrid_runner.tick_after(its);
    END LOOP;
END
$$;

CREATE FUNCTION hybrid_runner.notify_if_room(channel text, message text) RETURNS boolean
    LANGUAGE plpgsql
    AS $$
BEGIN
    -- of one type on both sides, for which nobody can make an operator that fits better
    IF pg_catalog.pg_notification_queue_usage() >= double precision '0.5' OR coalesce(
        nullif(pg_catalog.current_setting('hybrid_runner.quiet', true), ''), 'off')::boolean THEN
        RETURN false;
    END IF;
    PERFORM pg_catalog.pg_notify(channel, message);
    RETURN true;
END
$$;

CREATE FUNCTION hybrid_runner.open_bell(queue text) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
BEGIN
    PERFORM setval(q.doorbell, 0) FROM hybrid_runner.queues AS q WHERE q.name = open_bell.queue;
    IF NOT FOUND THEN -- somebody has deleted it
        PERFORM setval(hybrid_runner.open_queue(open_bell.queue)::regclass, 0);
    END IF;
END
$$;

CREATE FUNCTION hybrid_runner.open_queue(name text, ring_within interval DEFAULT '00:01:00'::interval) RETURNS text
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
#variable_conflict use_column
DECLARE
    its_number integer;
    its_name text;
BEGIN
    INSERT INTO hybrid_runner.queues (name, ring_within)
    VALUES (open_queue.name, open_queue.ring_within)
    ON CONFLICT (name) DO NOTHING
    RETURNING queues.number INTO its_number;
    IF FOUND THEN
        its_name := 'hybrid_runner.doorbell_' || its_number;
        EXECUTE format('CREATE SEQUENCE %s AS bigint MINVALUE 0 START 0', its_name);
        UPDATE hybrid_runner.queues SET doorbell = its_name::regclass WHERE name = open_queue.name;
    ELSE
        UPDATE hybrid_runner.queues SET ring_within = open_queue.ring_within
        WHERE name = open_queue.name AND ring_within < open_queue.ring_within;
        SELECT queues.doorbell INTO its_name FROM hybrid_runner.queues WHERE name = open_queue.name;
    END IF;
    RETURN its_name;
END
$$;

CREATE FUNCTION hybrid_runner.outranks_owner(source integer) RETURNS boolean
    LANGUAGE plpgsql STABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
DECLARE
    acting oid[] := ARRAY(
        -- SET SESSION AUTHORIZATION can be taken back by what it runs.
        SELECT a.usesysid FROM pg_stat_get_activity(pg_backend_pid()) AS a
        UNION ALL
        SELECT p.proowner
        FROM pg_proc AS p
        WHERE p.proname = 'source_' || outranks_owner.source || '_write'
            AND p.pronamespace = 'hybrid_runner'::regnamespace
    );
    superusers oid[] := ARRAY(
        SELECT r.oid
        FROM pg_roles AS r
        WHERE r.rolsuper AND (
            pg_has_role(session_user, r.oid, 'MEMBER')
            OR EXISTS (SELECT FROM unnest(acting) AS a (role) WHERE pg_has_role(a.role, r.oid, 'MEMBER'))
        )
    );
BEGIN
    RETURN superusers <> '{}' AND EXISTS (
        WITH RECURSIVE touched (oid) AS (
            SELECT s.relation::oid FROM hybrid_runner.sources AS s WHERE s.id = outranks_owner.source
            UNION
            SELECT i.inhrelid FROM touched AS t JOIN pg_inherits AS i ON i.inhparent = t.oid
        ),
        behind (role) AS (
            SELECT c.relowner FROM touched AS t LEFT JOIN pg_class AS c ON c.oid = t.oid
            UNION
            SELECT CASE WHEN n.nspowner = 'pg_database_owner'::regrole THEN d.datdba ELSE n.nspowner END
            FROM hybrid_runner.sources AS s
            JOIN pg_database AS d ON d.datname = current_database()
            LEFT JOIN pg_class AS c ON c.oid = s.relation
            LEFT JOIN pg_namespace AS n
                ON n.oid = c.relnamespace AND s.relation_name = format('%I.%I', n.nspname, c.relname)
            WHERE s.id = outranks_owner.source
        )
        SELECT
        FROM behind AS b
        WHERE EXISTS (
            SELECT FROM unnest(superusers) AS s (role) WHERE pg_has_role(b.role, s.role, 'MEMBER') IS NOT TRUE
        )
    );
END
$$;

CREATE FUNCTION hybrid_runner.own_schedule(name text) RETURNS hybrid_runner.schedules
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET lock_timeout TO '5s'
    AS $$
DECLARE
    its hybrid_runner.schedules;
BEGIN
    SELECT s.* INTO its FROM hybrid_runner.schedules AS s WHERE s.name = own_schedule.name;
    -- Asked before it is locked, since nobody may hold those of others, and again of what is
    -- locked, which somebody else may have made since.
    FOR asked IN 1..2 LOOP
        IF its.made_by <> session_user AND NOT has_column_privilege(
            session_user, 'hybrid_runner.schedules', 'paused_at', 'UPDATE') THEN
            RAISE EXCEPTION 'schedule % belongs to %: to change those of other logins takes the right '
                'UPDATE (paused_at) on hybrid_runner.schedules',
                hybrid_runner.shown(its.name), quote_ident(its.made_by)
                USING ERRCODE = 'insufficient_privilege';
        END IF;
        EXIT WHEN asked = 2;
        SELECT s.* INTO its FROM hybrid_runner.schedules AS s
        WHERE s.name = own_schedule.name FOR UPDATE;
    END LOOP;
    RETURN its;
END
$$;

CREATE FUNCTION hybrid_runner.pass_keys(keys text[]) RETURNS integer
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET lock_timeout TO '30ms'
    AS $$
DECLARE
    free text;
    may_wait boolean := current_setting('hybrid_runner.waited', true) IS DISTINCT FROM 'on';
    next hybrid_runner.jobs;
    passed integer := 0;
BEGIN
    IF NOT may_wait THEN
        PERFORM set_config('lock_timeout', '1ms', true); -- for this call
    END IF;
    FOR free IN
        SELECT k.key
        FROM unnest(pass_keys.keys) AS k (key)
        WHERE EXISTS (SELECT FROM hybrid_runner.jobs AS j WHERE j.key = '>' || k.key)
        ORDER BY k.key COLLATE "C"
    LOOP
        LOOP
            BEGIN
                IF may_wait THEN
                    SELECT j.* INTO next FROM hybrid_runner.jobs AS j
                    WHERE j.key = '>' || free AND j.state = 'queued' FOR UPDATE;
                ELSE
                    SELECT j.* INTO next FROM hybrid_runner.jobs AS j
                    WHERE j.key = '>' || free AND j.state = 'queued' FOR UPDATE SKIP LOCKED;
                END IF;
                EXIT WHEN NOT FOUND;
                UPDATE hybrid_runner.jobs AS j SET
                    key = free,
                    -- never behind a frontier; what still waits for another one sleeps on
                    run_at = CASE
                        WHEN starts_with(free, '>') OR j.run_at < 'infinity' AND j.run_at > clock_timestamp()
                            THEN j.run_at
                        ELSE clock_timestamp()
                    END,
                    version = j.version + 1
                WHERE j.id = next.id
                RETURNING j.run_at INTO next.run_at;
            EXCEPTION
                WHEN lock_not_available THEN
                    EXIT WHEN NOT may_wait;
                    may_wait := false;
                    PERFORM set_config('lock_timeout', '1ms', true);
                    PERFORM set_config('hybrid_runner.waited', 'on', true);
                    CONTINUE;
                WHEN unique_violation THEN
                    EXIT; -- somebody was quicker, and it goes on waiting for that one
            END;
            passed := passed + 1;
            PERFORM hybrid_runner.ring(next.queue, next.run_at);
            PERFORM hybrid_runner.publish(next.queue, next.kind, next.id);
            free := '>' || free;
        END LOOP;
    END LOOP;
    RETURN passed;
END
$$;

CREATE FUNCTION hybrid_runner.pause(queue text) RETURNS boolean
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
BEGIN
    PERFORM hybrid_runner.open_queue(queue);
    UPDATE hybrid_runner.queues AS q SET paused_at = clock_timestamp()
        WHERE q.name = queue AND q.paused_at IS NULL;
    RETURN FOUND;
END
$$;

CREATE FUNCTION hybrid_runner.pause_schedule(name text) RETURNS boolean
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
BEGIN
    IF (hybrid_runner.own_schedule(pause_schedule.name)).name IS NULL THEN
        RETURN false; -- somebody else may make it just now
    END IF;
    UPDATE hybrid_runner.schedules AS s SET paused_at = clock_timestamp()
    WHERE s.name = pause_schedule.name AND s.paused_at IS NULL;
    RETURN FOUND;
END
$$;

CREATE FUNCTION hybrid_runner.prune(most integer DEFAULT 20) RETURNS TABLE(what text, partition text, bytes bigint)
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET "TimeZone" TO 'UTC'
    SET "DateStyle" TO 'ISO'
    SET lock_timeout TO '300ms'
    AS $_$
#variable_conflict use_column
DECLARE
    due record;

    part text;

    place integer;

    successor text;

    has_dropped boolean := false;

    found_some integer := 1;

BEGIN
    IF current_setting('transaction_isolation') <> 'read committed' THEN
        RAISE EXCEPTION 'prune() copies what is kept as it is now, and an older snapshot would miss some: call it in READ COMMITTED'
            USING ERRCODE = 'invalid_transaction_state';

    END IF;

    -- Not together with another, nor with retry(), which would be in each other's way.
    PERFORM FROM hybrid_runner.locks AS l WHERE l.name = 'prune' FOR UPDATE SKIP LOCKED;

    IF NOT FOUND THEN
        -- Counted for find_growth(), unless somebody holds the duty's row too.
        PERFORM FROM hybrid_runner.duties AS d WHERE d.name = 'prune' FOR UPDATE SKIP LOCKED;

        IF FOUND THEN
            UPDATE hybrid_runner.duties AS d SET missed_turns = least(d.missed_turns, 1000000) + 1
            WHERE d.name = 'prune';

        END IF;

        RETURN QUERY SELECT 'busy', '', bigint '0';

        RETURN;

    END IF;

    UPDATE hybrid_runner.duties AS d SET missed_turns = 0
    WHERE d.name = 'prune' AND d.missed_turns > 0;

    -- 1: partitions of which nothing is kept
    FOR due IN
        SELECT old.half, array_agg(old.partition ORDER BY old.upper) AS partitions,
            array_agg(old.bytes ORDER BY old.upper) AS bytes
        FROM (
            SELECT p.half, p.partition, p.upper,
                pg_total_relation_size('hybrid_runner.' || p.partition) AS bytes
            FROM hybrid_runner.archive_partitions AS p
            JOIN hybrid_runner.archive_halves AS s ON s.half = p.half
            WHERE NOT p.is_default AND p.upper + s.longest <= now()
            ORDER BY p.upper
            LIMIT most
        ) AS old
        GROUP BY old.half
    LOOP
        BEGIN
            EXECUTE format('LOCK TABLE ONLY hybrid_runner.%I IN ACCESS EXCLUSIVE MODE', due.half);

            -- All settles wait now, so this waits for nobody.
            FOREACH part IN ARRAY due.partitions LOOP
                EXECUTE format('LOCK TABLE ONLY hybrid_runner.%I IN ACCESS EXCLUSIVE MODE NOWAIT',
                    part);

                EXECUTE format('DROP TABLE hybrid_runner.%I', part);

            END LOOP;

            has_dropped := true;

            RETURN QUERY SELECT 'dropped', gone.* FROM unnest(due.partitions, due.bytes) AS gone;

        EXCEPTION WHEN lock_not_available OR deadlock_detected THEN
            -- A transaction that archives and goes on for long holds the whole half, but nothing of
            -- the past.
            FOR place IN 1..cardinality(due.partitions) LOOP
                CONTINUE WHEN pg_relation_size('hybrid_runner.' || due.partitions[place]) = 0;

                BEGIN
                    EXECUTE format('TRUNCATE hybrid_runner.%I', due.partitions[place]);

                    RETURN QUERY SELECT 'emptied', due.partitions[place], due.bytes[place];

                EXCEPTION WHEN lock_not_available OR deadlock_detected THEN
                    RETURN QUERY SELECT 'blocked', due.partitions[place], due.bytes[place];

                    EXIT;

                END;

            END LOOP;

        END;

    END LOOP;

    -- 2: what found no partition; few, if any
    BEGIN
        FOREACH part IN ARRAY ARRAY['archive_completed_default', 'archive_failed_default'] LOOP
            CONTINUE WHEN pg_relation_size('hybrid_runner.' || part) = 0;

            EXECUTE format(
                'DELETE FROM hybrid_runner.%1$I WHERE ctid IN (SELECT a.ctid FROM hybrid_runner.%1$I AS a '
                'JOIN hybrid_runner.retention AS usual ON usual.state = a.state AND usual.kind = '''' '
                'LEFT JOIN hybrid_runner.retention AS own ON own.state = a.state AND own.kind = a.kind '
                'WHERE a.finished_at + coalesce(own.keep, usual.keep) <= now() LIMIT 10000)', part);

        END LOOP;

    EXCEPTION WHEN lock_not_available OR deadlock_detected THEN
        NULL; -- partitions are being made; the next round will do
    END;

    -- Its lock on the half lasts until the commit: copying has to wait for the next call.
    IF has_dropped THEN
        RETURN;

    END IF;

    -- 3: one partition of which some is kept, or several small old ones that can be one
    SELECT c.* INTO due FROM (
        SELECT
            p.half, ARRAY[p.partition] AS partitions, p.lower AS opens, p.upper AS closes, s.rules,
            'rewritten' AS manner
        FROM hybrid_runner.archive_partitions AS p
        JOIN hybrid_runner.archive_halves AS s ON s.half = p.half
        LEFT JOIN hybrid_runner.archive_scans AS l ON l.partition = p.partition
        WHERE NOT p.is_default AND (p.upper + s.longest > now()) IS NOT FALSE AND EXISTS (
            SELECT FROM hybrid_runner.retention AS r
            WHERE (r.state = 'completed') = (p.half = 'archive_completed')
                AND p.upper + r.keep <= now()
                AND (l.partition IS NULL OR l.rules <> s.rules OR p.upper + r.keep > l.scanned_at)
        )
        UNION ALL
        SELECT p.half, array_agg(p.partition), min(p.lower), max(p.upper), s.rules, 'merged'
        FROM hybrid_runner.archive_partitions AS p
        JOIN hybrid_runner.archive_halves AS s ON s.half = p.half
        CROSS JOIN (VALUES ('day', interval '1 day', interval '1 day'),
            ('month', '1 month', '30 days')) AS w (unit, width, rest)
        WHERE NOT p.is_default AND p.upper <= date_trunc(w.unit, p.lower) + w.width
            AND isfinite(p.lower)
            AND date_trunc(w.unit, p.lower) + w.width + w.rest <= now()
        GROUP BY p.half, s.rules, w.unit, date_trunc(w.unit, p.lower)
        HAVING count(*) > 1
    ) AS c
    WHERE NOT EXISTS (
        SELECT FROM hybrid_runner.archive_scans AS l
        WHERE l.partition = ANY (c.partitions) AND l.not_before > now()
    )
    ORDER BY c.manner DESC, c.closes
    LIMIT 1;

    IF NOT FOUND THEN
        DELETE FROM hybrid_runner.archive_scans AS l
        WHERE NOT EXISTS (SELECT FROM hybrid_runner.archive_partitions AS p
            WHERE p.partition = l.partition);

        RETURN;

    END IF;

    SELECT sum(pg_total_relation_size('hybrid_runner.' || p)) INTO bytes
    FROM unnest(due.partitions) AS p;

    IF due.manner = 'rewritten' THEN
        EXECUTE format(
            'SELECT FROM hybrid_runner.%I AS a LEFT JOIN hybrid_runner.retention AS own ON own.state = a.state AND own.kind = a.kind '
            'JOIN hybrid_runner.retention AS usual ON usual.state = a.state AND usual.kind = '''' '
            'WHERE a.finished_at + coalesce(own.keep, usual.keep) <= now() LIMIT 1',
            due.partitions[1]);

        GET DIAGNOSTICS found_some = ROW_COUNT;

    END IF;

    BEGIN
        IF found_some = 0 THEN
            successor := due.partitions[1];

            what := 'kept';

        ELSE
            successor := hybrid_runner.rewrite_archive(due.half, due.partitions, due.opens,
                due.closes);

            what := CASE WHEN successor IS NULL THEN 'dropped' ELSE due.manner END;

        END IF;

        partition := coalesce(successor, due.partitions[1]);

        IF successor IS NOT NULL THEN
            bytes := bytes - pg_total_relation_size('hybrid_runner.' || successor);

            INSERT INTO hybrid_runner.archive_scans AS l (partition, scanned_at, rules)
            VALUES (successor, now(), due.rules)
            ON CONFLICT (partition) DO UPDATE SET
                scanned_at = excluded.scanned_at, rules = excluded.rules,
                not_before = '-infinity';

        END IF;

    EXCEPTION WHEN lock_not_available OR deadlock_detected THEN
        -- The copy was for nothing: not again at once.
        what := 'blocked';

        partition := due.partitions[1];

        INSERT INTO hybrid_runner.archive_scans AS l (partition, not_before)
        VALUES (partition, now() + interval '5 minutes')
        ON CONFLICT (partition) DO UPDATE SET not_before = excluded.not_before;

    END;

    RETURN NEXT;

END
$_$;

CREATE FUNCTION hybrid_runner.publish(queue text, kind text, id bigint) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
BEGIN
    IF hybrid_runner.readers_left_ms() > 0 THEN
        PERFORM hybrid_runner.notify_if_room(
            hybrid_runner.changes_channel(), format('%s %s 0 %s', queue, kind, id));
    END IF;
END
$$;

CREATE FUNCTION hybrid_runner.queue_depths(most integer DEFAULT 10000, with_scheduled boolean DEFAULT true, one_queue text DEFAULT NULL::text, of_known_kinds boolean DEFAULT false) RETURNS TABLE(queue text, due bigint, scheduled bigint, running bigint, oldest_due double precision, paused boolean, workers bigint, slots bigint, opened boolean, due_of_known_kinds bigint)
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET plan_cache_mode TO 'force_generic_plan'
    SET enable_seqscan TO 'off'
    SET enable_bitmapscan TO 'off'
    SET jit TO 'off'
    AS $$
#variable_conflict use_column
DECLARE
    one record;
    names text[];
    kinds text[];
    enough integer;
    sampled bigint;
    -- Between two counts time passes, and between two calls too: what lies on the border is in one
    -- of them.
    border timestamptz := clock_timestamp();
BEGIN
    IF queue_depths.one_queue IS NOT NULL THEN
        names := ARRAY[queue_depths.one_queue];
        IF NOT EXISTS (SELECT FROM hybrid_runner.queues AS q WHERE q.name = queue_depths.one_queue)
            AND NOT EXISTS (SELECT FROM hybrid_runner.jobs AS j
                WHERE j.state = 'queued' AND j.queue = queue_depths.one_queue) THEN
            RETURN;
        END IF;
    ELSE
        WITH RECURSIVE seen (name) AS (
            (SELECT j.queue FROM hybrid_runner.jobs AS j WHERE j.state = 'queued'
                ORDER BY j.queue LIMIT 1)
            UNION ALL
            SELECT (SELECT j.queue FROM hybrid_runner.jobs AS j
                WHERE j.state = 'queued' AND j.queue > s.name ORDER BY j.queue LIMIT 1)
            FROM seen AS s
            WHERE s.name IS NOT NULL
        ),
        served AS MATERIALIZED (
            SELECT DISTINCT k.name
            FROM hybrid_runner.workers AS w
            CROSS JOIN LATERAL jsonb_object_keys(w.queues) AS k (name)
            WHERE w.dead_at IS NULL AND w.heartbeat_at + w.lease > clock_timestamp()
        ),
        opened AS (
            SELECT q.name, s.name IS NULL AS unserved
            FROM hybrid_runner.queues AS q
            LEFT JOIN served AS s ON s.name = q.name
            ORDER BY s.name IS NULL, q.name LIMIT 10000
        ),
        invented AS (
            -- Nobody has opened them, so nobody works on them; any producer can make them up.
            SELECT s.name
            FROM (SELECT seen.name FROM seen WHERE seen.name IS NOT NULL LIMIT 10000) AS s
            WHERE NOT EXISTS (SELECT FROM hybrid_runner.queues AS q WHERE q.name = s.name)
            LIMIT 100
        )
        SELECT array_agg(n.name ORDER BY n.rank, n.name) INTO names
        FROM (
            SELECT o.name, o.unserved::int AS rank FROM opened AS o
            UNION ALL
            SELECT i.name, 2 FROM invented AS i
        ) AS n;
    END IF;
    enough := least(most, greatest(1000, 100000 / greatest(1, coalesce(cardinality(names), 1))));
    IF queue_depths.of_known_kinds THEN
        SELECT array_agg(DISTINCT k.name) INTO kinds
        FROM hybrid_runner.workers AS w
        CROSS JOIN LATERAL unnest(w.kinds) AS k (name)
        WHERE w.dead_at IS NULL AND w.heartbeat_at + w.lease > clock_timestamp();
    END IF;

    FOR one IN
        WITH alive AS MATERIALIZED (
            SELECT w.queues, w.running FROM hybrid_runner.workers AS w
            WHERE w.dead_at IS NULL AND w.heartbeat_at + w.lease > clock_timestamp()
        ),
        served AS (
            SELECT e.key AS name, count(*) AS workers, sum(e.value::bigint)::bigint AS slots
            FROM alive AS a CROSS JOIN LATERAL jsonb_each(a.queues) AS e
            GROUP BY e.key
        ),
        busy AS (
            SELECT e.key AS name, sum(e.value::bigint)::bigint AS running
            FROM alive AS a CROSS JOIN LATERAL jsonb_each(a.running) AS e
            GROUP BY e.key
        )
        SELECT
            n.name, q.paused_at IS NOT NULL AS paused, q.name IS NOT NULL AS opened,
            coalesce(s.workers, 0) AS workers, coalesce(s.slots, 0) AS slots,
            coalesce(b.running, 0) AS running
        FROM unnest(names) WITH ORDINALITY AS n (name, place)
        LEFT JOIN hybrid_runner.queues AS q ON q.name = n.name
        LEFT JOIN served AS s ON s.name = n.name
        LEFT JOIN busy AS b ON b.name = n.name
        ORDER BY n.place
    LOOP
        queue := one.name;
        opened := one.opened;
        paused := one.paused;
        workers := one.workers;
        slots := one.slots;
        running := one.running;

        SELECT greatest(0, extract(epoch FROM border - min(first.run_at))) INTO oldest_due
        FROM generate_series(0, 9) AS lane (priority)
        CROSS JOIN LATERAL (
            SELECT j.run_at FROM hybrid_runner.jobs AS j
            WHERE j.state = 'queued' AND j.queue = one.name AND j.priority = lane.priority
                AND j.run_at <= border
            ORDER BY j.run_at LIMIT 1
        ) AS first;
        oldest_due := coalesce(oldest_due, 0);

        SELECT count(*) INTO due FROM (
            SELECT FROM generate_series(0, 9) AS lane (priority)
            CROSS JOIN LATERAL (
                SELECT FROM hybrid_runner.jobs AS j
                WHERE j.state = 'queued' AND j.queue = one.name AND j.priority = lane.priority
                    AND j.run_at <= border
                LIMIT enough
            ) AS one_of_them
            LIMIT enough
        ) AS counted;
        IF due = enough THEN
            due := greatest(due, hybrid_runner.estimate(format(
                'SELECT FROM hybrid_runner.jobs WHERE state = ''queued'' AND queue = %L '
                'AND run_at <= %L', one.name, border)));
        END IF;

        due_of_known_kinds := due;
        IF kinds IS NOT NULL AND workers > 0 AND due > 0 THEN
            SELECT count(*), count(*) FILTER (WHERE sample.kind = ANY (kinds))
            INTO sampled, due_of_known_kinds
            FROM generate_series(0, 9) AS lane (priority)
            CROSS JOIN LATERAL (
                (SELECT j.id, j.kind FROM hybrid_runner.jobs AS j
                WHERE j.state = 'queued' AND j.queue = one.name AND j.priority = lane.priority
                    AND j.run_at <= border
                ORDER BY j.run_at, j.id LIMIT enough / 10)
                UNION
                (SELECT j.id, j.kind FROM hybrid_runner.jobs AS j
                WHERE j.state = 'queued' AND j.queue = one.name AND j.priority = lane.priority
                    AND j.run_at <= border
                ORDER BY j.run_at DESC, j.id DESC LIMIT enough / 10)
            ) AS sample;
            -- Where most are known, the rest is like them; where few are, only those count.
            IF due_of_known_kinds * 2 >= sampled THEN
                due_of_known_kinds := due * due_of_known_kinds / greatest(1, sampled);
            END IF;
        END IF;

        scheduled := NULL;
        IF with_scheduled THEN
            SELECT count(*) INTO scheduled FROM (
                SELECT FROM generate_series(0, 9) AS lane (priority)
                CROSS JOIN LATERAL (
                    SELECT FROM hybrid_runner.jobs AS j
                    WHERE j.state = 'queued' AND j.queue = one.name AND j.priority = lane.priority
                        AND j.run_at > border
                    LIMIT enough
                ) AS one_of_them
                LIMIT enough
            ) AS counted;
            IF scheduled = enough THEN
                scheduled := greatest(scheduled, hybrid_runner.estimate(format(
                    'SELECT FROM hybrid_runner.jobs WHERE state = ''queued'' AND queue = %L '
                    'AND run_at > %L', one.name, border)));
            END IF;
        END IF;
        RETURN NEXT;
    END LOOP;
END
$$;

CREATE FUNCTION hybrid_runner.queue_of(kind text) RETURNS text
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
#variable_conflict use_column
DECLARE
    its_queue text;
    meant text;
BEGIN
    SELECT k.queue INTO its_queue FROM hybrid_runner.kinds AS k WHERE k.name = queue_of.kind;
    IF NOT FOUND AND length(queue_of.kind) <= 128 AND current_setting(
        'hybrid_runner.undeclared_kind', true) IS DISTINCT FROM queue_of.kind THEN
        PERFORM set_config('hybrid_runner.undeclared_kind', queue_of.kind, true);
        meant := hybrid_runner.similar_kind(queue_of.kind);
        IF meant IS NOT NULL THEN
            RAISE WARNING 'no worker has a handler for kind %: did you mean %?',
                quote_literal(queue_of.kind), quote_literal(meant);
        END IF;
    END IF;
    RETURN coalesce(its_queue, 'default');
END
$$;

CREATE FUNCTION hybrid_runner.read_cron(cron text, OUT minutes integer[], OUT hours integer[], OUT days integer[], OUT months integer[], OUT weekdays integer[], OUT either_will_do boolean, OUT is_real_time boolean) RETURNS record
    LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
DECLARE
    words CONSTANT text[] := ARRAY[
        '@hourly', '@daily', '@midnight', '@weekly', '@monthly', '@yearly', '@annually'];
    fields text[];
BEGIN
    IF cron IS NULL OR octet_length(cron) > 255 THEN
        RAISE EXCEPTION 'cron: an expression has at most 255 bytes, not %', coalesce(octet_length(cron)::text, 'NULL')
            USING ERRCODE = 'invalid_parameter_value';
    END IF;
    cron := btrim(cron, E' \t');
    IF left(cron, 1) = '@' THEN
        fields := CASE lower(cron)
            WHEN '@hourly' THEN '{0,*,*,*,*}' WHEN '@daily' THEN '{0,0,*,*,*}'
            WHEN '@midnight' THEN '{0,0,*,*,*}' WHEN '@weekly' THEN '{0,0,*,*,0}'
            WHEN '@monthly' THEN '{0,0,1,*,*}' WHEN '@yearly' THEN '{0,0,1,1,*}'
            WHEN '@annually' THEN '{0,0,1,1,*}'
        END;
        IF fields IS NULL THEN
            RAISE EXCEPTION 'cron: there is no %', hybrid_runner.shown(cron) || coalesce(
                ': did you mean ' || hybrid_runner.nearest_word(cron, words) || '?',
                ': give one of ' || array_to_string(words, ', '))
                USING ERRCODE = 'invalid_parameter_value';
        END IF;
    ELSE
        fields := regexp_split_to_array(cron, '[ \t]+');
        IF cardinality(fields) <> 5 OR cron = '' THEN
            RAISE EXCEPTION 'cron: five fields are needed (minute hour day month weekday), not %',
                CASE WHEN cron = '' THEN 0 ELSE cardinality(fields) END
                || CASE WHEN cardinality(fields) = 6 THEN ': below a minute use every' ELSE '' END
                USING ERRCODE = 'invalid_parameter_value';
        END IF;
    END IF;
    minutes := hybrid_runner.read_cron_field('minute', fields[1], 0, 59);
    hours := hybrid_runner.read_cron_field('hour', fields[2], 0, 23);
    days := hybrid_runner.read_cron_field('day', fields[3], 1, 31);
    months := hybrid_runner.read_cron_field(
        'month', fields[4], 1, 12, '{JAN,FEB,MAR,APR,MAY,JUN,JUL,AUG,SEP,OCT,NOV,DEC}');
    weekdays := hybrid_runner.read_cron_field(
        'weekday', fields[5], 0, 7, '{SUN,MON,TUE,WED,THU,FRI,SAT}');
    IF 7 = ANY (weekdays) THEN
        weekdays := array_remove(array_prepend(0, array_remove(weekdays, 0)), 7);
    END IF;
    either_will_do := left(fields[3], 1) <> '*' AND left(fields[5], 1) <> '*';
    is_real_time := left(fields[1], 1) = '*' OR left(fields[2], 1) = '*';
END
$$;

CREATE FUNCTION hybrid_runner.read_cron_field(field text, given text, lowest integer, highest integer, names text[] DEFAULT NULL::text[]) RETURNS integer[]
    LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE
    AS $_$
DECLARE
    part text;

    found text[];

    first integer;

    last integer;

    step integer;

    numbers integer[] := '{}';

    word text;

    meant text;

BEGIN
    IF given OPERATOR(pg_catalog.=) '*' THEN
        RETURN ARRAY(SELECT n FROM pg_catalog.generate_series(lowest, highest) AS n);

    END IF;

    FOREACH part IN ARRAY pg_catalog.string_to_array(pg_catalog.upper(given), ',') LOOP
        IF part ~ '^\d\d?$' THEN -- most are just that
            first := part;

            last := first;

            step := 1;

        ELSIF field = 'day' AND part IN ('L', 'LW') THEN
            numbers := numbers || CASE part WHEN 'L' THEN 32 ELSE 33 END;

            CONTINUE;

        ELSIF field = 'day' AND part ~ '^\d\d?W$' AND pg_catalog.rtrim(part, 'W')::integer BETWEEN 1 AND 31 THEN
            numbers := numbers || 100 + pg_catalog.rtrim(part, 'W')::integer;

            CONTINUE;

        ELSE
            found := pg_catalog.regexp_match(
                part, '^(?:(\*)|(\d{1,2}|[A-Z]+)(?:-(\d{1,2}|[A-Z]+)|(#[1-5]|L)(?!/))?)(?:/(\d{1,2}))?$');

            IF found IS NULL OR (found[4] IS NOT NULL AND field <> 'weekday') THEN
                RAISE EXCEPTION 'cron: % % is none of *, n, n-m, with /step, and lists of these',
                    field, hybrid_runner.shown(part) USING ERRCODE = 'invalid_parameter_value';

            END IF;

            FOR place IN 2..3 LOOP
                word := found[place];

                CONTINUE WHEN word IS NULL OR word ~ '^\d';

                found[place] := pg_catalog.array_position(names, word) - 1 + lowest;

                -- A week may end with its Sunday: FRI-SUN.
                IF place = 3 AND word = 'SUN' THEN
                    found[place] := '7';

                END IF;

                IF found[place] IS NULL THEN
                    meant := hybrid_runner.nearest_word(word, names);

                    RAISE EXCEPTION 'cron: % % is no %', field, hybrid_runner.shown(word),
                        CASE WHEN names IS NULL THEN 'number' ELSE 'name' END
                        || coalesce(': did you mean ' || meant || '?', '')
                        USING ERRCODE = 'invalid_parameter_value';

                END IF;

            END LOOP;

            first := coalesce(found[2]::integer, lowest);

            step := coalesce(found[5]::integer, 1);

            last := CASE
                WHEN found[3] IS NOT NULL THEN found[3]::integer
                WHEN found[1] IS NOT NULL OR found[5] IS NOT NULL THEN highest
                ELSE first
            END;

            IF step = 0 THEN
                RAISE EXCEPTION 'cron: % % steps by nothing: at least /1', field,
                    hybrid_runner.shown(part) USING ERRCODE = 'invalid_parameter_value';

            END IF;

        END IF;

        IF first < lowest OR first > highest OR last > highest THEN
            RAISE EXCEPTION 'cron: % % is outside % to %', field, hybrid_runner.shown(part), lowest, highest
                USING ERRCODE = 'invalid_parameter_value';

        END IF;

        IF first > last THEN
            RAISE EXCEPTION 'cron: % % runs backwards: write %-%,%-%', field,
                hybrid_runner.shown(part), first, highest - CASE field WHEN 'weekday' THEN 1 ELSE 0 END, lowest, last
                USING ERRCODE = 'invalid_parameter_value';

        END IF;

        IF found[4] IS NOT NULL THEN
            numbers := numbers || first % 7
                + CASE found[4] WHEN 'L' THEN 90 ELSE 10 * pg_catalog.substr(found[4], 2)::integer END;

            found := NULL;

        ELSE
            numbers := numbers || ARRAY(SELECT n FROM pg_catalog.generate_series(first, last, step) AS n);

        END IF;

    END LOOP;

    RETURN ARRAY(SELECT DISTINCT n FROM pg_catalog.unnest(numbers) AS n ORDER BY n);

END
$_$;

CREATE FUNCTION hybrid_runner.readers_left_ms() RETURNS integer
    LANGUAGE sql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
    SELECT CASE WHEN left_over.ms BETWEEN 1 AND 60000 THEN left_over.ms::integer ELSE 0 END
    FROM (
        SELECT pg_sequence_last_value('hybrid_runner.stream_readers_until')
            - (extract(epoch FROM clock_timestamp()) * 1000)::bigint
    ) AS left_over (ms)
$$;

CREATE FUNCTION hybrid_runner.recent_ticks(its hybrid_runner.schedules, since timestamp with time zone, until timestamp with time zone, most integer) RETURNS timestamp with time zone[]
    LANGUAGE plpgsql STABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
DECLARE
    start timestamptz := coalesce(its.starts_at, timestamptz '2001-01-01 UTC');
    step double precision := extract(epoch FROM its.every);
    last bigint;
    ticks timestamptz[] := '{}';
    found timestamptz[];
    closes timestamptz := least(recent_ticks.until, its.ends_at);
    opens timestamptz;
    -- In so many minutes there are no more ticks than minutes.
    width interval := make_interval(mins => recent_ticks.most);
BEGIN
    since := greatest(since, its.starts_at);
    IF its.at IS NOT NULL THEN
        RETURN CASE WHEN its.at BETWEEN since AND closes THEN ARRAY[its.at] ELSE '{}' END;
    ELSIF its.every IS NOT NULL THEN
        last := floor(extract(epoch FROM closes - start)::float8 / step);
        RETURN ARRAY(
            SELECT start + make_interval(secs => step * n)
            FROM generate_series(greatest(last - most + 1, 0), last) AS n
            WHERE start + make_interval(secs => step * n) BETWEEN since AND closes
            ORDER BY n
        );
    END IF;
    -- From the end, in stretches that grow while little is found.
    WHILE closes >= since AND cardinality(ticks) < most LOOP
        opens := greatest(closes - width, since - interval '1 microsecond');
        found := hybrid_runner.cron_ticks(its.cron, its.timezone, opens, closes, most);
        IF cardinality(found) = most AND width > make_interval(mins => most) THEN
            width := greatest(width / 4, make_interval(mins => most));
            CONTINUE;
        END IF;
        ticks := found || ticks;
        closes := opens;
        width := width * 4;
    END LOOP;
    RETURN ticks[greatest(1, cardinality(ticks) - most + 1):];
END
$$;

CREATE FUNCTION hybrid_runner.renew_ticks() RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
DECLARE
    its hybrid_runner.schedules;
    renewed timestamptz;
    began timestamptz := clock_timestamp();
BEGIN
    IF EXISTS (
        SELECT FROM hybrid_runner.zone_rules AS z WHERE z.server_version = current_setting('server_version')
    ) THEN
        RETURN;
    END IF;
    PERFORM FROM hybrid_runner.zone_rules AS z FOR UPDATE SKIP LOCKED;
    IF NOT FOUND THEN
        RETURN; -- somebody does it now
    END IF;
    FOR its IN
        SELECT s.* FROM hybrid_runner.schedules AS s
        WHERE s.cron IS NOT NULL AND s.timezone <> 'UTC' AND isfinite(s.ticked_until)
            AND s.next_at IS NOT NULL
        ORDER BY s.next_at FOR UPDATE SKIP LOCKED
    LOOP
        -- Nothing fires meanwhile. Of what is left one tick comes as it was reckoned before.
        EXIT WHEN clock_timestamp() > began + interval '10 seconds';
        BEGIN
            renewed := hybrid_runner.tick_after(its);
            UPDATE hybrid_runner.schedules AS s SET next_at = renewed
            WHERE s.name = its.name AND s.next_at IS DISTINCT FROM renewed;
        EXCEPTION
            WHEN invalid_parameter_value THEN
                NULL; -- its zone is gone, which it says when it fires
        END;
    END LOOP;
    UPDATE hybrid_runner.zone_rules AS z SET server_version = current_setting('server_version');
END
$$;

CREATE FUNCTION hybrid_runner.resume(queue text) RETURNS boolean
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
BEGIN
    UPDATE hybrid_runner.queues AS q SET paused_at = NULL
        WHERE q.name = queue AND q.paused_at IS NOT NULL;
    IF FOUND THEN
        -- Not as a full worker asks for help: what is found now had no ring of its own, and that is
        -- no wonder.
        PERFORM hybrid_runner.notify_if_room('hybrid_runner.' || queue, 'help resumed');
    END IF;
    RETURN FOUND;
END
$$;

CREATE FUNCTION hybrid_runner.resume_schedule(name text) RETURNS boolean
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
BEGIN
    IF (hybrid_runner.own_schedule(resume_schedule.name)).name IS NULL THEN
        RETURN false; -- somebody else may make it just now
    END IF;
    UPDATE hybrid_runner.schedules AS s SET paused_at = NULL
    WHERE s.name = resume_schedule.name AND s.paused_at IS NOT NULL;
    RETURN FOUND;
END
$$;

CREATE FUNCTION hybrid_runner.retry(id bigint) RETURNS text
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET plan_cache_mode TO 'force_custom_plan'
    AS $$
#variable_conflict use_column
DECLARE
    job hybrid_runner.jobs;
    done hybrid_runner.archive;
BEGIN
    SELECT j.* INTO job FROM hybrid_runner.jobs AS j WHERE j.id = retry.id FOR UPDATE;
    IF job.state = 'running' AND job.source IS NOT NULL AND hybrid_runner.outranks_owner(job.source) THEN
        RAISE 'a superuser runs no code of the table''s owner: use a worker login that is no superuser';
    END IF;
    IF job.state = 'running' AND EXISTS (
        SELECT FROM hybrid_runner.workers AS w
        WHERE w.id = job.worker_id AND w.dead_at IS NULL
            AND w.heartbeat_at + w.lease > clock_timestamp()
    ) THEN
        RETURN 'running';
    ELSIF job.state = 'running' THEN
        -- Its worker is dead. Should it live after all, its claim is void.
        UPDATE hybrid_runner.jobs AS j SET
            state = 'queued', run_at = clock_timestamp(),
            began_at = coalesce(j.began_at, j.started_at), claim = NULL, worker_id = NULL,
            started_at = NULL, cancel_requested_at = NULL, version = j.version + 1
        WHERE j.id = retry.id;
        IF job.source IS NOT NULL THEN
            PERFORM hybrid_runner.write_rows(
                job.source, ARRAY[retry.id], ARRAY[job.row_key], ARRAY['queued'], ARRAY[false],
                ARRAY[job.attempt::integer], NULL, NULL, NULL, NULL, NULL);
        END IF;
        PERFORM hybrid_runner.ring(job.queue, clock_timestamp());
        PERFORM hybrid_runner.publish(job.queue, job.kind, retry.id);
        RETURN 'queued';
    ELSIF job.state = 'queued' THEN
        UPDATE hybrid_runner.jobs AS j
            SET run_at = least(j.run_at, clock_timestamp()), version = j.version + 1
            WHERE j.id = retry.id;
        PERFORM hybrid_runner.ring(job.queue, clock_timestamp());
        PERFORM hybrid_runner.publish(job.queue, job.kind, retry.id);
        RETURN 'queued';
    END IF;

    -- Here, where it holds nothing of the archive yet, it can wait for a partition that is being
    -- written anew.
    PERFORM FROM hybrid_runner.locks AS l WHERE l.name = 'prune' FOR SHARE;
    SELECT a.* INTO done FROM hybrid_runner.archived(ARRAY[retry.id]) AS a;
    SELECT a.* INTO done FROM hybrid_runner.archive AS a
    WHERE a.id = retry.id AND a.finished_at = done.finished_at FOR UPDATE;
    IF NOT FOUND THEN
        -- Somebody else may have retried it while this call waited.
        RETURN CASE WHEN EXISTS (SELECT FROM hybrid_runner.jobs AS j WHERE j.id = retry.id)
            THEN 'queued' ELSE 'unknown' END;
    END IF;
    IF done.source IS NOT NULL AND hybrid_runner.outranks_owner(done.source) THEN
        RAISE 'a superuser runs no code of the table''s owner: use a worker login that is no superuser';
    END IF;
    -- A worker may just be writing the end of this job into its row: that waits for nothing.
    PERFORM FROM hybrid_runner.late_rows AS l
    WHERE l.source = done.source AND l.row_key = done.row_key FOR UPDATE;
    -- A fresh set of attempts and budgets; the errors and runs of the earlier ones are kept, and so
    -- is what its last run waited for and was given; but if that was nothing, this run is not told
    -- that its time is over.
    INSERT INTO hybrid_runner.jobs
        (id, queue, kind, priority, payload, data, key, max_attempts, timeout, max_snoozes,
        max_duration, finish_within, traceparent, enqueued_by, source, row_key, schedule, tick, waits_for,
        errors,
        history, version, created_at)
    VALUES (done.id, done.queue, done.kind, done.priority, done.payload, done.data, done.key,
        done.max_attempts, done.timeout, done.max_snoozes, done.max_duration, done.finish_within,
        done.traceparent, done.enqueued_by, done.source, done.row_key, done.schedule, done.tick,
        CASE WHEN EXISTS (
            SELECT FROM hybrid_runner.waits AS w
            WHERE w.job_id = retry.id AND w.wake_of = done.snoozes
                AND (w.run IS NULL OR w.run = coalesce(done.began_at, done.started_at))
        ) THEN done.waits_for END,
        done.errors, done.history, done.version + 1, done.created_at)
    ON CONFLICT DO NOTHING;
    IF NOT FOUND THEN
        RETURN 'key_taken';
    END IF;
    DELETE FROM hybrid_runner.archive AS a
    WHERE a.id = retry.id AND a.finished_at = done.finished_at;
    UPDATE hybrid_runner.waits AS w
    SET run = NULL, wake_of = CASE WHEN w.wake_of = done.snoozes THEN 0 END
    WHERE w.job_id = retry.id AND (w.run IS NULL OR w.run = coalesce(done.began_at, done.started_at));
    IF done.source IS NOT NULL THEN
        PERFORM hybrid_runner.write_rows(
            done.source, ARRAY[retry.id], ARRAY[done.row_key], ARRAY['retried'], ARRAY[false],
            ARRAY[0], NULL, NULL, NULL, NULL, NULL);
    END IF;
    PERFORM hybrid_runner.publish(done.queue, done.kind, retry.id);
    RETURN 'queued';
END
$$;

CREATE FUNCTION hybrid_runner.rewrite_archive(half text, partitions text[], opens timestamp with time zone, closes timestamp with time zone) RETURNS text
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $_$
DECLARE
    successor text := format(
        '%s_%s_%s', half,
        CASE WHEN isfinite(opens) THEN to_char(opens, 'YYYYMMDDHH24') ELSE 'past' END,
        to_char(closes, 'YYYYMMDDHH24'));

    part text;

    counted bigint;

    kept bigint := 0;

BEGIN
    -- Those who read go on; those who write wait here, where they hold nothing of it yet.
    FOREACH part IN ARRAY partitions LOOP
        EXECUTE format('LOCK TABLE ONLY hybrid_runner.%I IN EXCLUSIVE MODE', part);

    END LOOP;

    CREATE TABLE hybrid_runner.archive_successor
        (LIKE hybrid_runner.archive INCLUDING DEFAULTS INCLUDING CONSTRAINTS);

    FOREACH part IN ARRAY partitions LOOP
        EXECUTE format(
            'INSERT INTO hybrid_runner.archive_successor SELECT a.* FROM hybrid_runner.%I AS a '
            'LEFT JOIN hybrid_runner.retention AS own ON own.state = a.state AND own.kind = a.kind '
            'LEFT JOIN hybrid_runner.retention AS usual ON usual.state = a.state AND usual.kind = '''' '
            'WHERE (a.finished_at + coalesce(own.keep, usual.keep) > now()) IS NOT FALSE', part);

        GET DIAGNOSTICS counted = ROW_COUNT;

        kept := kept + counted;

    END LOOP;

    IF kept > 0 THEN
        -- All that ATTACH would do while everybody waits is done here.
        EXECUTE format(
            'ALTER TABLE hybrid_runner.archive_successor ADD PRIMARY KEY (id, finished_at, state), ADD CONSTRAINT fits '
            'CHECK (state IS NOT NULL AND %s AND finished_at IS NOT NULL AND finished_at >= %L AND finished_at < %L)',
            CASE half WHEN 'archive_completed' THEN 'state = ''completed'''
                ELSE 'state IN (''failed'', ''cancelled'')' END,
            opens, closes);

    END IF;

    EXECUTE format('LOCK TABLE ONLY hybrid_runner.%I IN ACCESS EXCLUSIVE MODE', half);

    FOREACH part IN ARRAY partitions LOOP
        EXECUTE format('LOCK TABLE ONLY hybrid_runner.%I IN ACCESS EXCLUSIVE MODE NOWAIT', part);

        EXECUTE format('DROP TABLE hybrid_runner.%I', part);

    END LOOP;

    IF kept = 0 THEN
        DROP TABLE hybrid_runner.archive_successor;

        RETURN NULL;

    END IF;

    EXECUTE format(
        'WITH strays AS (DELETE FROM hybrid_runner.%1$I WHERE finished_at >= %2$L AND finished_at < %3$L RETURNING *) '
        'INSERT INTO hybrid_runner.archive_successor SELECT * FROM strays', half || '_default',
        opens, closes);

    EXECUTE format('ALTER TABLE hybrid_runner.archive_successor RENAME TO %I', successor);

    EXECUTE format(
        'ALTER INDEX hybrid_runner.archive_successor_pkey RENAME TO %I', successor || '_pkey');

    EXECUTE format(
        'ALTER TABLE hybrid_runner.%I ATTACH PARTITION hybrid_runner.%I FOR VALUES FROM (%s) TO (%L)',
        half, successor, CASE WHEN isfinite(opens) THEN quote_literal(opens) ELSE 'MINVALUE' END,
        closes);

    EXECUTE format('ALTER TABLE hybrid_runner.%I DROP CONSTRAINT fits', successor);

    RETURN successor;

END
$_$;

CREATE FUNCTION hybrid_runner.ring(queue text, due timestamp with time zone, commits boolean DEFAULT false) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
DECLARE
    server_time timestamptz := clock_timestamp();
    muted_until bigint;
    within interval;
BEGIN
    -- No row, no sequence, no value, any doubt: ring. (The file of a relation that is gone is NULL;
    -- its value would be an error.)
    SELECT CASE WHEN pg_relation_filenode(q.doorbell) IS NOT NULL
        THEN pg_sequence_last_value(q.doorbell) END, q.ring_within
    INTO muted_until, within
    FROM hybrid_runner.queues AS q WHERE q.name = ring.queue;
    -- No mute is longer than a minute: one that seems to be was written by a clock that was set
    -- back since.
    IF muted_until - extract(epoch FROM server_time) * 1000 BETWEEN 1 AND 60000 THEN
        RETURN;
    END IF;
    -- As notify_if_room has it, without the call: this is on the way of every insert that rings.
    IF due > server_time + coalesce(within, interval '60 seconds')
        OR pg_notification_queue_usage() >= double precision '0.5'
        OR coalesce(nullif(current_setting('hybrid_runner.quiet', true), ''), 'off')::boolean THEN
        RETURN;
    END IF;
    IF due <= server_time THEN
        PERFORM pg_notify('hybrid_runner.' || queue, '');
    ELSIF commits THEN
        PERFORM pg_notify('hybrid_runner.' || queue,
            'later ' || ceil(extract(epoch FROM due - server_time) * 1000)::bigint);
    ELSE
        PERFORM pg_notify('hybrid_runner.' || queue, 'later');
    END IF;
END
$$;

CREATE FUNCTION hybrid_runner.ring_for_inserted_jobs() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
DECLARE
    its_queue text;
    last_queue text;
    last_due timestamptz;
    is_mute boolean;
    is_quiet boolean;
BEGIN
    SELECT min(i.queue COLLATE "C"), max(i.queue COLLATE "C"), max(i.run_at)
    INTO its_queue, last_queue, last_due
    FROM inserted AS i;
    IF its_queue IS NULL THEN
        RETURN NULL; -- nothing was inserted
    END IF;
    IF its_queue = last_queue THEN
        SELECT
            -- muted for 1 to 60000 ms more; BETWEEN would ask twice for the value and for the time
            abs(
                CASE WHEN pg_relation_filenode(q.doorbell) IS NOT NULL
                    THEN pg_sequence_last_value(q.doorbell) END
                - (extract(epoch FROM clock_timestamp()) * 1000)::bigint - 30000
            ) < 30000
        INTO is_mute
        FROM hybrid_runner.queues AS q WHERE q.name = its_queue;
        IF is_mute THEN
            RETURN NULL;
        END IF;
    END IF;
    is_quiet := coalesce(nullif(current_setting('hybrid_runner.quiet', true), ''), 'off')::boolean;
    IF is_quiet THEN
        -- What is due a moment after it was made needs no ring, so that none is missed.
        UPDATE hybrid_runner.jobs AS j
        SET run_at = greatest(j.run_at, j.created_at) + interval '101 milliseconds'
        FROM inserted AS i
        WHERE j.id = i.id AND j.run_at <= j.created_at + interval '100 milliseconds';
    ELSIF its_queue = last_queue AND last_due <= clock_timestamp()
        AND pg_notification_queue_usage() < double precision '0.5' THEN
        -- As ring() does it, without the call.
        PERFORM pg_notify('hybrid_runner.' || its_queue, '');
    ELSE
        PERFORM hybrid_runner.ring(i.queue, min(i.run_at)) FROM inserted AS i
        GROUP BY i.queue, i.run_at > clock_timestamp();
    END IF;
    RETURN NULL;
END
$$;

CREATE FUNCTION hybrid_runner.ring_for_row_changes() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
BEGIN
    PERFORM hybrid_runner.notify_if_room('hybrid_runner.~sources', 'changes');
    RETURN NULL;
END
$$;

CREATE FUNCTION hybrid_runner.ring_for_schedules() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
BEGIN
    IF TG_OP = 'INSERT' THEN
        PERFORM hybrid_runner.keep_schedule_duty();
    END IF;
    PERFORM hybrid_runner.notify_if_room('hybrid_runner.~ticks', '');
    RETURN NULL;
END
$$;

CREATE FUNCTION hybrid_runner.ring_for_signals() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
BEGIN
    IF (SELECT count(DISTINCT i.key) FROM inserted AS i) <= 100 THEN
        PERFORM hybrid_runner.notify_if_room(hybrid_runner.signals_channel(), i.key)
        FROM (SELECT DISTINCT n.key FROM inserted AS n) AS i;
    ELSE
        PERFORM hybrid_runner.notify_if_room(hybrid_runner.signals_channel(), '');
    END IF;
    RETURN NULL;
END
$$;

CREATE FUNCTION hybrid_runner.row_verdict(state text, shows text, is_wanted boolean, was_queued boolean, is_untouched boolean) RETURNS text
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    AS $$
    SELECT CASE
        WHEN state = 'running' THEN CASE
            WHEN shows = 'running' OR shows = 'queued' AND is_wanted THEN 'write'
            WHEN shows = 'ended' AND is_untouched THEN 'write'
            ELSE 'unwanted'
        END
        WHEN shows = 'running' THEN 'write'
        WHEN state = 'retried' THEN CASE shows WHEN 'ended' THEN 'write' ELSE 'keep' END
        WHEN state IN ('completed', 'failed', 'cancelled') THEN CASE
            WHEN shows = 'queued' AND (was_queued OR is_untouched) THEN 'write'
            WHEN shows = 'ended' AND is_untouched THEN 'write'
            WHEN shows = 'queued' AND is_wanted THEN 'again'
            ELSE 'keep'
        END
        -- Put back after a retry that the row could not show.
        WHEN state IN ('queued', 'snoozed') AND shows = 'ended' AND is_untouched THEN 'write'
        ELSE 'keep'
    END
$$;

CREATE FUNCTION hybrid_runner.rows_of_source(source integer, what text, keys text[], most integer) RETURNS TABLE(row_key text, word text, is_wanted boolean, seen text, fresh text, size integer, stale_at timestamp with time zone, is_cancelled boolean)
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $_$
BEGIN
    IF hybrid_runner.outranks_owner(rows_of_source.source) THEN
        RAISE 'a superuser runs no code of the table''s owner: use a worker login that is no superuser, or attach it anew';

    END IF;

    RETURN QUERY EXECUTE format(
        'SELECT r.row_key, r.word, r.is_wanted, r.seen, r.fresh, r.size, r.stale_at, r.is_cancelled'
        ' FROM hybrid_runner.%I($1, $2, $3) AS r', 'source_' || rows_of_source.source || '_rows'
    ) USING rows_of_source.what, rows_of_source.keys, rows_of_source.most;

END
$_$;

CREATE FUNCTION hybrid_runner.run_now(name text) RETURNS bigint
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET enable_seqscan TO 'off'
    AS $$
DECLARE
    its hybrid_runner.schedules := hybrid_runner.own_schedule(run_now.name);
    job bigint;
BEGIN
    IF its.name IS NULL THEN
        RAISE EXCEPTION 'there is no schedule %', hybrid_runner.shown(run_now.name)
            USING ERRCODE = 'invalid_parameter_value';
    END IF;
    IF its.overlap <> 'allow' THEN
        SELECT j.id INTO job FROM hybrid_runner.jobs AS j WHERE j.schedule = its.name ORDER BY j.id LIMIT 1;
        IF FOUND THEN
            RAISE NOTICE 'job % of schedule % still lives: nothing was stored', job,
                hybrid_runner.shown(its.name);
            RETURN job;
        END IF;
    END IF;
    job := hybrid_runner.store_ticks(its, ARRAY[NULL::timestamptz]);
    UPDATE hybrid_runner.schedules AS s SET last_job = job WHERE s.name = its.name;
    RETURN job;
END
$$;

CREATE FUNCTION hybrid_runner.scale(queue text DEFAULT NULL::text, usual_slots integer DEFAULT 200) RETURNS TABLE(queue_name text, backlog bigint, running bigint, slots bigint, workers bigint, wanted bigint)
    LANGUAGE sql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
    SELECT
        f.queue, f.due, f.running, f.slots, f.workers,
        -- A paused queue needs the workers whose jobs still run, and no more.
        least(1000, ceil(
            (CASE
                WHEN f.paused THEN 0
                WHEN scale.queue IS NULL AND NOT f.opened AND EXISTS (
                    SELECT FROM hybrid_runner.workers AS w
                    WHERE w.dead_at IS NULL AND w.heartbeat_at + w.lease > clock_timestamp()
                ) THEN 0
                ELSE f.due_of_known_kinds
            END + f.running)
            / CASE WHEN f.slots > 0 THEN f.slots::numeric / f.workers
                ELSE greatest(1, scale.usual_slots) END))::bigint
    FROM hybrid_runner.queue_depths(
        with_scheduled => false, one_queue => scale.queue, of_known_kinds => true
    ) AS f
$$;

CREATE FUNCTION hybrid_runner.schedule(name text, kind text, payload jsonb DEFAULT '{}'::jsonb, cron text DEFAULT NULL::text, every interval DEFAULT NULL::interval, at timestamp with time zone DEFAULT NULL::timestamp with time zone, timezone text DEFAULT 'UTC'::text, queue text DEFAULT NULL::text, priority integer DEFAULT 5, max_attempts integer DEFAULT NULL::integer, timeout interval DEFAULT NULL::interval, overlap text DEFAULT 'skip'::text, missed text DEFAULT 'one'::text, catch_up interval DEFAULT '1 day'::interval, jitter interval DEFAULT '00:00:00'::interval, starts_at timestamp with time zone DEFAULT NULL::timestamp with time zone, ends_at timestamp with time zone DEFAULT NULL::timestamp with time zone) RETURNS timestamp with time zone
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET lock_timeout TO '5s'
    AS $$
#variable_conflict use_column
DECLARE
    coming timestamptz;
BEGIN
    PERFORM hybrid_runner.own_schedule(schedule.name);
    PERFORM hybrid_runner.queue_of(schedule.kind); -- which warns of what looks like a typo
    coming := hybrid_runner.store_schedule(
        schedule.name, schedule.kind, schedule.payload, schedule.cron, schedule.every, schedule.at,
        schedule.timezone, schedule.queue, schedule.priority, schedule.max_attempts,
        schedule.timeout, schedule.overlap, schedule.missed, schedule.catch_up, schedule.jitter,
        schedule.starts_at, schedule.ends_at, false);
    IF coming IS NULL THEN
        RAISE NOTICE 'schedule % will never fire', hybrid_runner.shown(schedule.name);
    END IF;
    RETURN coming;
END
$$;

CREATE FUNCTION hybrid_runner.shown(given text) RETURNS text
    LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
BEGIN
    RETURN CASE WHEN given IS NULL THEN 'NULL' ELSE
        '''' || regexp_replace(left(given, 60), '[^[:print:]]', '?', 'g')
        || CASE WHEN length(given) > 60 THEN '…' ELSE '' END || '''' END;
END
$$;

CREATE FUNCTION hybrid_runner.signal(key text, payload jsonb DEFAULT 'null'::jsonb, once boolean DEFAULT false) RETURNS bigint
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
DECLARE
    sent bigint;
BEGIN
    IF key IS NULL OR octet_length(key) NOT BETWEEN 1 AND 512 THEN
        RAISE EXCEPTION 'the key of a signal must be 1 to 512 bytes, not %',
            coalesce(octet_length(key)::text, 'NULL')
            USING ERRCODE = 'invalid_parameter_value';
    END IF;
    INSERT INTO hybrid_runner.signals AS s (key, payload, once)
    VALUES (signal.key, coalesce(signal.payload, 'null'), coalesce(signal.once, false))
    ON CONFLICT DO NOTHING
    RETURNING s.id INTO sent;
    RETURN sent;
END
$$;

CREATE FUNCTION hybrid_runner.signals_channel() RETURNS text
    LANGUAGE sql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
    SELECT 'hybrid_runner.~signals~'
        || to_hex(pg_sequence_last_value('hybrid_runner.changes_channel_number'))
$$;

CREATE FUNCTION hybrid_runner.similar_kind(kind text) RETURNS text
    LANGUAGE plpgsql STABLE SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
#variable_conflict use_column
DECLARE
    given text := translate(lower(similar_kind.kind), '_.:/-', '');
    -- Words that are one letter apart, or two of whose letters changed places, have the same
    -- beginning or the same end, which is asked first: it costs far less.
    half integer := greatest(1, (length(given) - 2) / 2);
    meant text;
BEGIN
    IF length(similar_kind.kind) > 128 OR EXISTS (
        SELECT FROM hybrid_runner.kinds AS k WHERE k.name = similar_kind.kind
    ) THEN
        RETURN NULL;
    END IF;
    SELECT its.name INTO meant
    FROM (
        SELECT k.name, translate(lower(k.name), '_.:/-', '') AS bare
        FROM hybrid_runner.kinds AS k ORDER BY k.name LIMIT 1000
    ) AS its
    WHERE CASE
        WHEN its.bare = given THEN true
        WHEN length(given) < 4 OR abs(length(its.bare) - length(given)) > 1 THEN false
        WHEN left(its.bare, half) <> left(given, half) AND right(its.bare, half) <> right(given, half)
            THEN false
        WHEN translate(its.bare, '0123456789', '') = translate(given, '0123456789', '') THEN false
        ELSE (
            SELECT
                substr(its.bare, d.at + 1) IN (substr(given, d.at), substr(given, d.at + 1))
                OR substr(its.bare, d.at) = substr(given, d.at + 1)
                OR substr(its.bare, d.at)
                    = substr(given, d.at + 1, 1) || substr(given, d.at, 1) || substr(given, d.at + 2)
            FROM (
                SELECT min(n) AS at FROM generate_series(1, length(given) + 1) AS n
                WHERE substr(its.bare, n, 1) <> substr(given, n, 1)
            ) AS d
        )
    END
    ORDER BY its.bare = given DESC, its.name
    LIMIT 1;
    RETURN meant;
END
$$;

CREATE FUNCTION hybrid_runner.store_follow_ups(follow_ups jsonb[]) RETURNS TABLE(follows bigint, id bigint)
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET lock_timeout TO '30ms'
    AS $$
#variable_conflict use_column
DECLARE
    clean_ups_have_keys boolean := true;
    followed bigint[];
    ids bigint[];
    is_complete boolean;
BEGIN
    IF cardinality(store_follow_ups.follow_ups) = 0 THEN
        RETURN;
    END IF;
    LOOP
        BEGIN
            WITH wanted AS (
                SELECT
                    (f.job ->> 'follows')::bigint AS follows, f.place, f.job,
                    coalesce((f.job ->> 'is_clean_up')::boolean, false) AS is_clean_up
                FROM unnest(store_follow_ups.follow_ups) WITH ORDINALITY AS f (job, place)
            ),
            new AS MATERIALIZED (
                SELECT
                    w.*, nextval('hybrid_runner.jobs_id_seq') AS id,
                    CASE
                        WHEN NOT w.is_clean_up THEN w.job ->> 'key'
                        WHEN clean_ups_have_keys AND NOT EXISTS (
                            SELECT FROM hybrid_runner.jobs AS j WHERE j.key = w.job ->> 'key'
                        ) THEN w.job ->> 'key'
                    END AS key
                FROM wanted AS w
            ),
            made AS (
                INSERT INTO hybrid_runner.jobs AS j (
                    id, kind, payload, queue, key, priority, run_at, max_attempts, timeout,
                    finish_by, data, traceparent, max_snoozes, max_duration, finish_within,
                    start_by
                )
                SELECT
                    n.id, r.kind, n.job -> 'payload',
                    coalesce(r.queue, k.queue, 'default'), n.key, coalesce(r.priority, 5),
                    coalesce(r.run_at, clock_timestamp() + coalesce((n.job ->> 'delay')::interval, interval '0')),
                    r.max_attempts, r.timeout, r.finish_by, n.job -> 'data', r.traceparent,
                    r.max_snoozes, r.max_duration, r.finish_within, r.start_by
                FROM new AS n
                CROSS JOIN LATERAL jsonb_populate_record(
                    NULL::hybrid_runner.jobs, n.job - ARRAY['payload', 'data']) AS r
                LEFT JOIN hybrid_runner.kinds AS k ON k.name = r.kind
                -- In one order everywhere, so that two of these cannot wait for each other.
                ORDER BY n.key COLLATE "C", n.place
                ON CONFLICT (key) WHERE key IS NOT NULL DO NOTHING
                RETURNING j.id
            )
            SELECT
                array_agg(n.follows) FILTER (WHERE s.id IS NOT NULL),
                array_agg(n.id) FILTER (WHERE s.id IS NOT NULL),
                bool_and(s.id IS NOT NULL OR NOT n.is_clean_up)
            INTO followed, ids, is_complete
            FROM new AS n
            LEFT JOIN made AS s ON s.id = n.id;
            IF NOT is_complete THEN
                RAISE EXCEPTION 'the key of a clean-up is taken' USING ERRCODE = 'lock_not_available';
            END IF;
            EXIT;
        EXCEPTION
            WHEN lock_not_available THEN
                IF NOT clean_ups_have_keys OR NOT EXISTS (
                    SELECT FROM unnest(store_follow_ups.follow_ups) AS f (job)
                    WHERE f.job ? 'is_clean_up'
                ) THEN
                    RAISE EXCEPTION 'the key of a follow-up is in a transaction that is still open'
                        USING ERRCODE = 'lock_not_available',
                        CONSTRAINT = 'jobs_one_live_job_per_key';
                END IF;
                clean_ups_have_keys := false;
        END;
    END LOOP;
    RETURN QUERY SELECT u.follows, u.id FROM unnest(followed, ids) AS u (follows, id);
END
$$;

CREATE FUNCTION hybrid_runner.store_schedule(name text, kind text, payload jsonb, cron text, every interval, at timestamp with time zone, timezone text, queue text, priority integer, max_attempts integer, timeout interval, overlap text, missed text, catch_up interval, jitter interval, starts_at timestamp with time zone, ends_at timestamp with time zone, declared boolean) RETURNS timestamp with time zone
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
#variable_conflict use_column
DECLARE
    -- What fits no smallint is refused by the trigger, in its words.
    new_priority smallint := CASE
        WHEN store_schedule.priority BETWEEN -32768 AND 32767 THEN store_schedule.priority
        WHEN store_schedule.priority IS NOT NULL THEN -1
    END;
    new_max_attempts smallint := CASE
        WHEN store_schedule.max_attempts BETWEEN -32768 AND 32767 THEN store_schedule.max_attempts
        WHEN store_schedule.max_attempts IS NOT NULL THEN -1
    END;
    coming timestamptz;
BEGIN
    SELECT s.next_at INTO coming
    FROM hybrid_runner.schedules AS s
    WHERE s.name = store_schedule.name AND (
        s.kind, s.payload, s.cron, s.every, s.at, s.timezone, s.queue, s.priority, s.max_attempts,
        s.timeout, s.overlap, s.missed, s.catch_up, s.jitter, s.starts_at, s.ends_at, s.declared
    ) IS NOT DISTINCT FROM (
        store_schedule.kind, store_schedule.payload, store_schedule.cron, store_schedule.every,
        store_schedule.at, store_schedule.timezone, store_schedule.queue, new_priority,
        new_max_attempts, store_schedule.timeout, store_schedule.overlap, store_schedule.missed,
        store_schedule.catch_up, store_schedule.jitter, store_schedule.starts_at,
        store_schedule.ends_at, store_schedule.declared
    );
    IF FOUND THEN
        RETURN coming;
    END IF;
    INSERT INTO hybrid_runner.schedules AS s (
        name, kind, payload, cron, every, at, timezone, queue, priority, max_attempts, timeout,
        overlap, missed, catch_up, jitter, starts_at, ends_at, declared
    )
    VALUES (
        store_schedule.name, store_schedule.kind, store_schedule.payload, store_schedule.cron,
        store_schedule.every, store_schedule.at, store_schedule.timezone, store_schedule.queue,
        new_priority, new_max_attempts, store_schedule.timeout, store_schedule.overlap,
        store_schedule.missed, store_schedule.catch_up, store_schedule.jitter,
        store_schedule.starts_at, store_schedule.ends_at, store_schedule.declared
    )
    ON CONFLICT (name) DO UPDATE SET
        kind = excluded.kind, payload = excluded.payload, cron = excluded.cron,
        every = excluded.every, at = excluded.at, timezone = excluded.timezone,
        queue = excluded.queue, priority = excluded.priority, max_attempts = excluded.max_attempts,
        timeout = excluded.timeout, overlap = excluded.overlap, missed = excluded.missed,
        catch_up = excluded.catch_up, jitter = excluded.jitter, starts_at = excluded.starts_at,
        ends_at = excluded.ends_at, declared = excluded.declared,
        -- What code declares is its worker's, whoever had the name before.
        made_by = CASE WHEN excluded.declared THEN session_user ELSE s.made_by END
    -- Somebody else may have made it since it was looked for.
    WHERE excluded.declared OR s.made_by = session_user OR has_column_privilege(
        session_user, 'hybrid_runner.schedules', 'paused_at', 'UPDATE')
    RETURNING s.next_at INTO coming;
    IF NOT FOUND THEN
        PERFORM hybrid_runner.own_schedule(store_schedule.name);
    END IF;
    RETURN coming;
END
$$;

CREATE FUNCTION hybrid_runner.store_ticks(its hybrid_runner.schedules, ticks timestamp with time zone[]) RETURNS bigint
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
DECLARE
    last_id bigint;
BEGIN
    WITH made AS (
        INSERT INTO hybrid_runner.jobs AS j (
            kind, payload, queue, priority, run_at, max_attempts, timeout, traceparent, enqueued_by,
            schedule, tick
        )
        SELECT
            its.kind, its.payload, coalesce(its.queue, k.queue, 'default'), its.priority,
            coalesce(hybrid_runner.jittered(its.name, t.tick, its.jitter), clock_timestamp()),
            its.max_attempts, its.timeout,
            -- whoever fires has no part in it; whoever runs it by hand has
            CASE WHEN t.tick IS NULL THEN nullif(current_setting('hybrid_runner.traceparent', true), '') END,
            its.made_by, its.name, t.tick
        FROM unnest(store_ticks.ticks) WITH ORDINALITY AS t (tick, place)
        LEFT JOIN hybrid_runner.kinds AS k ON k.name = its.kind
        ORDER BY t.place
        RETURNING j.id
    )
    SELECT max(m.id) INTO last_id FROM made AS m;
    RETURN last_id;
END
$$;

CREATE FUNCTION hybrid_runner.take_ended(ids bigint[], claims bigint[], states text[], results text[], errors text[], cancelled_at timestamp with time zone) RETURNS SETOF hybrid_runner.archive
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
BEGIN
    RETURN QUERY
    WITH settled AS (
        SELECT
            s.id, s.claim,
            CASE WHEN take_ended.states IS NULL THEN 'completed' ELSE s.state END AS state,
            CASE WHEN take_ended.results IS NULL THEN jsonb 'null' ELSE s.result END AS result,
            s.error
        FROM unnest(
            take_ended.ids, take_ended.claims, take_ended.states, take_ended.results::jsonb[],
            take_ended.errors::jsonb[]
        ) AS s (id, claim, state, result, error)
    )
    DELETE FROM hybrid_runner.jobs AS j USING settled AS s
    -- The ids stand beside the join so that no plan can choose to walk the table.
    WHERE j.id = ANY (take_ended.ids) AND j.id = s.id
        -- No test of the state: a queued job has no claim, and the planner would expect one row
        -- and join in loops.
        AND (j.claim = s.claim OR s.claim IS NULL)
    RETURNING
        j.id, j.queue, j.kind, j.priority, j.payload, j.data, j.key, j.run_at, j.max_attempts,
        j.timeout, j.finish_by, j.start_by, j.max_snoozes, j.max_duration, j.finish_within, j.traceparent,
        j.enqueued_by, j.source, j.row_key, j.schedule, j.tick, s.state::hybrid_runner.job_state,
        -- Failed from the queue: the attempt that could not begin counts.
        CASE
            WHEN j.state = 'queued' AND s.state = 'failed' THEN (j.attempt + 1)::smallint
            ELSE j.attempt
        END,
        j.snoozes, coalesce(j.began_at, j.started_at), j.waits_for, j.claim, j.worker_id,
        j.started_at, j.progress,
        CASE
            WHEN s.error IS NULL THEN j.errors
            -- somebody with a worker's login has written it
            WHEN jsonb_typeof(j.errors) <> 'array' THEN jsonb_build_array(j.errors, s.error)
            WHEN jsonb_array_length(j.errors) >= 20 THEN (j.errors - 0) || s.error
            ELSE coalesce(j.errors, '[]') || s.error
        END,
        j.history, j.version + 1, coalesce(j.cancel_requested_at, take_ended.cancelled_at),
        j.created_at, clock_timestamp(), s.result, NULL::bigint[];
END
$$;

CREATE FUNCTION hybrid_runner.take_key(key text, unique_for interval) RETURNS bigint
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
#variable_conflict use_column
DECLARE
    taken_by_job bigint;
BEGIN
    FOR tries IN 1..10 LOOP
        -- Looked at first: what follows locks it, and others would wait for the end of the caller's
        -- transaction.
        SELECT t.job_id INTO taken_by_job FROM hybrid_runner.taken_keys AS t
        WHERE t.key = take_key.key AND t.until > clock_timestamp();
        IF FOUND THEN
            RETURN taken_by_job;
        END IF;
        INSERT INTO hybrid_runner.taken_keys AS t (key, job_id, until)
        VALUES (take_key.key, 0, clock_timestamp() + make_interval(
            secs => extract(epoch FROM take_key.unique_for)::float8))
        ON CONFLICT ON CONSTRAINT taken_keys_pkey DO UPDATE
        SET job_id = 0, until = excluded.until, taken_by = excluded.taken_by
        WHERE t.until <= clock_timestamp();
        IF FOUND THEN
            RETURN NULL;
        END IF;
    END LOOP;
    RAISE EXCEPTION 'key % changes hands too fast: try again', quote_literal(take_key.key)
        USING ERRCODE = 'serialization_failure';
END
$$;

CREATE FUNCTION hybrid_runner.tick_after(its hybrid_runner.schedules) RETURNS timestamp with time zone
    LANGUAGE plpgsql STABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
DECLARE
    start timestamptz;
    step double precision;
    tick timestamptz;
BEGIN
    IF its.at IS NOT NULL THEN
        -- One that was over when the schedule was made is late, not forgotten.
        tick := CASE WHEN its.last_tick IS NULL OR its.last_tick < its.at THEN its.at END;
    ELSIF its.cron IS NOT NULL THEN
        tick := (hybrid_runner.cron_ticks(
            its.cron, its.timezone, greatest(its.ticked_until, its.starts_at - interval '1 microsecond'),
            its.ends_at, 1))[1];
    ELSE
        start := coalesce(its.starts_at, timestamptz '2001-01-01 UTC');
        step := extract(epoch FROM its.every);
        tick := CASE WHEN start > its.ticked_until THEN start ELSE start + make_interval(secs => step * (
            floor(extract(epoch FROM its.ticked_until - start)::float8 / step) + 1)) END;
        -- Fractions that cannot be written exactly may lead back to the same tick.
        IF tick <= its.ticked_until THEN
            tick := tick + make_interval(secs => step);
        END IF;
    END IF;
    RETURN CASE WHEN tick <= coalesce(its.ends_at, 'infinity') AND tick < timestamptz '9900-01-01 UTC'
        THEN tick END;
END
$$;

CREATE FUNCTION hybrid_runner.tick_clock() RETURNS timestamp with time zone
    LANGUAGE sql
    AS $$
    SELECT pg_catalog.clock_timestamp()
$$;

CREATE FUNCTION hybrid_runner.unknown_kinds(due_for interval DEFAULT '00:01:00'::interval, most integer DEFAULT 100) RETURNS TABLE(queue text, kind text, due bigint, oldest_due double precision, elsewhere boolean, meant text)
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET plan_cache_mode TO 'force_generic_plan'
    SET enable_seqscan TO 'off'
    SET enable_bitmapscan TO 'off'
    SET jit TO 'off'
    AS $$
#variable_conflict use_column
DECLARE
    queues text[];
    known text[];
    per_lane integer;
    until timestamptz := clock_timestamp() - unknown_kinds.due_for;
BEGIN
    WITH RECURSIVE seen (name) AS (
        (SELECT j.queue FROM hybrid_runner.jobs AS j WHERE j.state = 'queued'
            ORDER BY j.queue LIMIT 1)
        UNION ALL
        SELECT (SELECT j.queue FROM hybrid_runner.jobs AS j
            WHERE j.state = 'queued' AND j.queue > s.name ORDER BY j.queue LIMIT 1)
        FROM seen AS s
        WHERE s.name IS NOT NULL
    ),
    named AS (
        SELECT n.name
        FROM (
            -- Queues that workers opened come first: whoever may insert can make up others.
            SELECT q.name, true AS is_open FROM hybrid_runner.queues AS q
            WHERE EXISTS (
                SELECT FROM hybrid_runner.jobs AS j WHERE j.state = 'queued' AND j.queue = q.name
            )
            UNION ALL
            SELECT s.name, false
            FROM (SELECT seen.name FROM seen WHERE seen.name IS NOT NULL LIMIT 10000) AS s
            WHERE NOT EXISTS (SELECT FROM hybrid_runner.queues AS q WHERE q.name = s.name)
        ) AS n
        ORDER BY NOT n.is_open, n.name LIMIT 1000
    )
    SELECT array_agg(n.name) INTO queues FROM named AS n;
    IF queues IS NULL THEN
        RETURN;
    END IF;
    per_lane := greatest(10, least(1000, 20000 / cardinality(queues)));
    SELECT coalesce(array_agg(DISTINCT k.name), '{}') INTO known
    FROM hybrid_runner.workers AS w CROSS JOIN LATERAL unnest(w.kinds) AS k (name)
    WHERE w.dead_at IS NULL AND w.heartbeat_at + w.lease > clock_timestamp();

    RETURN QUERY
    WITH alive AS MATERIALIZED (
        SELECT w.queues, w.kinds FROM hybrid_runner.workers AS w
        WHERE w.dead_at IS NULL AND w.heartbeat_at + w.lease > clock_timestamp()
    ),
    served AS MATERIALIZED (
        SELECT name.queue, array_agg(DISTINCT k.name) FILTER (WHERE k.name IS NOT NULL) AS kinds
        FROM (
            SELECT DISTINCT e.key AS queue, a.kinds
            FROM alive AS a CROSS JOIN LATERAL jsonb_each(a.queues) AS e
        ) AS name
        LEFT JOIN LATERAL unnest(name.kinds) AS k (name) ON true
        GROUP BY name.queue
    ),
    waiting AS (
        SELECT n.name AS queue, job.kind, job.run_at
        FROM unnest(queues) AS n (name)
        CROSS JOIN generate_series(0, 9) AS lane (priority)
        CROSS JOIN LATERAL (
            (SELECT j.id, j.kind, j.run_at FROM hybrid_runner.jobs AS j
            WHERE j.state = 'queued' AND j.queue = n.name AND j.priority = lane.priority
                AND j.run_at <= until
            ORDER BY j.run_at, j.id LIMIT per_lane)
            UNION
            (SELECT j.id, j.kind, j.run_at FROM hybrid_runner.jobs AS j
            WHERE j.state = 'queued' AND j.queue = n.name AND j.priority = lane.priority
                AND j.run_at <= until
            ORDER BY j.run_at DESC, j.id DESC LIMIT per_lane / 10)
        ) AS job
    ),
    kinds AS (
        SELECT w.queue, w.kind, count(*) AS due, min(w.run_at) AS since
        FROM waiting AS w GROUP BY w.queue, w.kind
    )
    SELECT
        k.queue, k.kind, k.due, extract(epoch FROM clock_timestamp() - k.since)::float8,
        k.kind = ANY (known), hybrid_runner.similar_kind(k.kind)
    FROM kinds AS k
    LEFT JOIN served AS s ON s.queue = k.queue
    WHERE k.kind <> ALL (CASE WHEN s.queue IS NULL THEN known ELSE coalesce(s.kinds, '{}') END)
    ORDER BY k.due DESC, k.queue, k.kind
    LIMIT unknown_kinds.most;
END
$$;

CREATE FUNCTION hybrid_runner.unschedule(name text) RETURNS boolean
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
BEGIN
    IF (hybrid_runner.own_schedule(unschedule.name)).name IS NULL THEN
        RETURN false; -- somebody else may make it just now
    END IF;
    DELETE FROM hybrid_runner.schedules AS s WHERE s.name = unschedule.name;
    RETURN FOUND;
END
$$;

CREATE FUNCTION hybrid_runner.wake_waiting(ids bigint[]) RETURNS SETOF bigint
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET plan_cache_mode TO 'force_generic_plan'
    SET enable_seqscan TO 'off'
    SET enable_hashjoin TO 'off'
    SET enable_mergejoin TO 'off'
    SET jit TO 'off'
    AS $$
BEGIN
    RETURN QUERY
    WITH open AS MATERIALIZED (
        SELECT j.id, j.version, j.queue
        FROM hybrid_runner.jobs AS j
        WHERE j.id = ANY (wake_waiting.ids) AND j.state = 'queued' AND j.waits_for IS NOT NULL
            AND j.run_at > clock_timestamp()
            AND EXISTS (
                SELECT FROM hybrid_runner.signals AS s
                -- One without a number may not be for this job in the end, and the attempt would
                -- find nothing: a time-out.
                WHERE s.key = j.waits_for AND s.newest_job >= j.id AND s.newest_job < 9223372036854775807 AND (
                    -- as take_signals.sql has it
                    SELECT true FROM hybrid_runner.waits AS w
                    WHERE w.job_id = j.id AND w.signal_id = s.id
                    LIMIT 1
                ) IS NULL
            )
            -- It was given its signal, or its time-out, and waits for its next attempt.
            AND NOT EXISTS (
                SELECT FROM hybrid_runner.waits AS w
                WHERE w.job_id = j.id AND w.wake_of = j.snoozes
                    AND (w.run = j.began_at OR w.run IS NULL)
            )
    ),
    free AS MATERIALIZED (
        SELECT j.id
        FROM hybrid_runner.jobs AS j
        JOIN open AS o ON o.id = j.id AND o.version = j.version
        WHERE j.id = ANY (wake_waiting.ids)
        FOR NO KEY UPDATE OF j SKIP LOCKED
    ),
    woken AS (
        UPDATE hybrid_runner.jobs AS j SET run_at = clock_timestamp(), version = j.version + 1
        WHERE j.id = ANY (ARRAY(SELECT f.id FROM free AS f))
        RETURNING j.id, j.queue, j.kind
    ),
    -- Also for one that another has woken meanwhile: this statement may have had a lock on it
    -- when a worker looked, which did not see it then.
    told AS (
        SELECT hybrid_runner.ring(o.queue, now()) FROM (SELECT DISTINCT n.queue FROM open AS n) AS o
    ),
    published AS (
        SELECT hybrid_runner.publish(w.queue, w.kind, w.id) FROM woken AS w
        WHERE hybrid_runner.readers_left_ms() > 0
    )
    SELECT w.id FROM woken AS w
    WHERE (SELECT count(*) FROM told) IS NOT NULL AND (SELECT count(*) FROM published) IS NOT NULL;
END
$$;

CREATE FUNCTION hybrid_runner.want_again(source integer, row_key text) RETURNS text
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
DECLARE
    became text;
BEGIN
    IF EXISTS (
        SELECT FROM hybrid_runner.late_rows AS l
        WHERE l.source = want_again.source AND l.row_key = want_again.row_key
    ) THEN
        RETURN 'nothing'; -- it is stored when the row is written
    END IF;
    SELECT w.outcome INTO became
    FROM hybrid_runner.write_rows(
        want_again.source, ARRAY[-1::bigint], ARRAY[want_again.row_key], ARRAY['completed'],
        ARRAY[false], ARRAY[NULL::integer], NULL, NULL, NULL, NULL, NULL, is_checked => true) AS w;
    IF became IN ('locked', 'refused') THEN -- it may be wanted no more when it is free
        DELETE FROM hybrid_runner.late_rows AS l
        WHERE l.source = want_again.source AND l.row_key = want_again.row_key;
        RETURN 'later';
    END IF;
    RETURN CASE became WHEN 'again' THEN 'stored' ELSE 'nothing' END;
END
$$;

CREATE FUNCTION hybrid_runner.want_rows(source integer, most integer, first_block bigint DEFAULT 0, blocks bigint DEFAULT NULL::bigint) RETURNS integer
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $_$
DECLARE
    made integer;

BEGIN
    IF hybrid_runner.outranks_owner(want_rows.source) THEN
        RAISE 'a superuser runs no code of the table''s owner: use a worker login that is no superuser, or attach it anew';

    END IF;

    EXECUTE format('SELECT hybrid_runner.%I($1, $2, $3)', 'source_' || want_rows.source || '_want')
    INTO made USING want_rows.most, want_rows.first_block, want_rows.blocks;

    RETURN made;

END
$_$;

CREATE FUNCTION hybrid_runner.write_late_rows(source integer, keys text[]) RETURNS TABLE(row_key text, outcome text)
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
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

CREATE FUNCTION hybrid_runner.write_rows(source integer, job_ids bigint[], keys text[], states text[], were_queued boolean[], retries integer[], workers text[], started timestamp with time zone[], finished timestamp with time zone[], results text[], errors text[], is_checked boolean DEFAULT false, put_off boolean DEFAULT false) RETURNS TABLE(job_id bigint, outcome text, word text)
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET plan_cache_mode TO 'force_generic_plan'
    SET enable_seqscan TO 'off'
    AS $_$
#variable_conflict use_column
DECLARE
    were_late boolean;

    unshown text[];

    outcomes text[];

    words text[];

    seens text[];

    ids bigint[];

    why text := 'somebody holds the row';

    is_news boolean;

    is_outranked boolean;

BEGIN
    IF NOT EXISTS (SELECT FROM hybrid_runner.sources AS s WHERE s.id = write_rows.source) THEN
        RETURN QUERY SELECT a.id, 'detached', NULL::text
        FROM unnest(write_rows.job_ids) AS a (id);

        RETURN;

    END IF;

    were_late := EXISTS (
        SELECT FROM hybrid_runner.late_rows AS l WHERE l.source = write_rows.source
    );

    IF were_late THEN unshown := ARRAY(
        SELECT l.seen
        FROM unnest(write_rows.keys) WITH ORDINALITY AS a (key, place)
        LEFT JOIN hybrid_runner.late_rows AS l
            ON l.source = write_rows.source AND l.row_key = a.key
        ORDER BY a.place
    );

    END IF;

    is_outranked := hybrid_runner.outranks_owner(write_rows.source);

    put_off := put_off OR is_outranked;

    IF put_off THEN
        ids := write_rows.job_ids;

        outcomes := array_fill('locked'::text, ARRAY[cardinality(ids)]);

        why := CASE
            WHEN is_outranked
                THEN 'a superuser runs no code of the table''s owner: use a worker login that is no superuser, or attach it anew'
            ELSE 'a worker writes it later'
        END;

    ELSE
        BEGIN
            EXECUTE format(
                'SELECT w.ids, w.outcomes, w.words, w.seens FROM hybrid_runner.%I('
                '$1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12) AS w',
                'source_' || write_rows.source || '_write'
            )
            INTO ids, outcomes, words, seens
            USING write_rows.job_ids, write_rows.keys, write_rows.states, write_rows.were_queued,
                write_rows.retries, write_rows.workers, write_rows.started, write_rows.finished,
                write_rows.results, write_rows.errors, unshown, write_rows.is_checked;

        EXCEPTION
            WHEN OTHERS THEN
                why := left(format('%s (%s)', SQLERRM, SQLSTATE), 1000);

                ids := write_rows.job_ids;

                outcomes := array_fill('refused'::text, ARRAY[cardinality(ids)]);

                words := NULL;

                seens := NULL;

                IF 'running' = ANY (write_rows.states) OR true = ANY (write_rows.were_queued) THEN
                    BEGIN
                        SELECT array_agg(r.word ORDER BY a.place), array_agg(r.seen ORDER BY a.place)
                        INTO words, seens
                        FROM unnest(write_rows.keys) WITH ORDINALITY AS a (key, place)
                        LEFT JOIN hybrid_runner.rows_of_source(
                            write_rows.source, 'seen', write_rows.keys, NULL) AS r ON r.row_key = a.key;

                    EXCEPTION
                        WHEN OTHERS THEN
                            NULL; -- the one that asked for the row has to wait, and its read fails too
                    END;

                END IF;

        END;

    END IF;

    IF outcomes && ARRAY['locked', 'refused', 'undone'] THEN
        WITH noted AS (
            INSERT INTO hybrid_runner.late_rows AS l
                (source, row_key, job_id, state, why, is_refused, seen)
            SELECT
                write_rows.source, a.key, CASE WHEN a.id > 0 THEN a.id END, a.state,
                CASE o.outcome WHEN 'undone' THEN 'a trigger of the table keeps its status' ELSE why END,
                o.outcome = 'undone' OR o.outcome = 'refused' AND cardinality(write_rows.keys) = 1,
                CASE
                    WHEN o.outcome = 'undone' THEN o.seen
                    WHEN is_checked THEN NULL
                    WHEN a.state IN ('running', 'retried') OR a.was_queued THEN o.seen
                END
            FROM unnest(write_rows.job_ids, write_rows.keys, write_rows.states, write_rows.were_queued)
                AS a (id, key, state, was_queued)
            JOIN unnest(ids, outcomes, seens) AS o (id, outcome, seen) ON o.id = a.id
            WHERE o.outcome IN ('locked', 'refused', 'undone') AND a.state <> 'beat'
            ORDER BY a.key COLLATE "C"
            ON CONFLICT ON CONSTRAINT late_rows_pkey DO UPDATE SET
                job_id = excluded.job_id, state = excluded.state, why = excluded.why,
                is_refused = excluded.is_refused, tries = l.tries + 1,
                -- Once it could not be shown, that stays so until it is written.
                seen = coalesce(excluded.seen, l.seen)
            RETURNING l.tries = 0 AS is_new
        )
        SELECT bool_or(n.is_new) INTO is_news FROM noted AS n;

        IF is_news THEN
            PERFORM hybrid_runner.notify_if_room('hybrid_runner.~sources', 'changes');

        END IF;

    END IF;

    IF were_late THEN
        DELETE FROM hybrid_runner.late_rows AS l
        WHERE l.source = write_rows.source AND l.row_key = ANY (ARRAY(
            SELECT a.key
            FROM unnest(write_rows.job_ids, write_rows.keys, write_rows.states) AS a (id, key, state)
            -- A heartbeat says nothing of what the row shows.
            WHERE a.state <> 'beat'
                -- A CASE is looked up in a hash; joined they would be in loops, each with each.
                AND CASE WHEN a.id IN (
                    SELECT o.id
                    FROM unnest(ids, outcomes) AS o (id, outcome)
                    WHERE o.outcome NOT IN ('locked', 'refused', 'undone')
                ) THEN true END
        ));

    END IF;

    RETURN QUERY
    SELECT o.id, o.outcome, o.word
    FROM unnest(ids, outcomes, words) AS o (id, outcome, word);

END
$_$;

CREATE TABLE hybrid_runner.jobs (
    id bigint NOT NULL,
    queue text DEFAULT 'default'::text NOT NULL,
    kind text NOT NULL,
    priority smallint DEFAULT 5 NOT NULL,
    payload jsonb DEFAULT '{}'::jsonb NOT NULL,
    data jsonb,
    key text,
    run_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    max_attempts smallint,
    timeout interval,
    finish_by timestamp with time zone,
    start_by timestamp with time zone,
    max_snoozes integer,
    max_duration interval,
    finish_within interval,
    traceparent text DEFAULT NULLIF(current_setting('hybrid_runner.traceparent'::text, true), ''::text),
    enqueued_by text DEFAULT SESSION_USER NOT NULL,
    source integer,
    row_key text,
    schedule text,
    tick timestamp with time zone,
    state hybrid_runner.job_state DEFAULT 'queued'::hybrid_runner.job_state NOT NULL,
    attempt smallint DEFAULT 0 NOT NULL,
    snoozes integer DEFAULT 0 NOT NULL,
    began_at timestamp with time zone,
    waits_for text,
    claim bigint,
    worker_id text,
    started_at timestamp with time zone,
    progress jsonb,
    errors jsonb,
    history jsonb,
    version integer DEFAULT 1 NOT NULL,
    cancel_requested_at timestamp with time zone,
    created_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    CONSTRAINT jobs_budgets_are_positive_and_at_most_ten_years CHECK (((max_snoozes >= 0) AND (max_duration > '00:00:00'::interval) AND (max_duration <= '3650 days'::interval) AND (finish_within > '00:00:00'::interval) AND (finish_within <= '3650 days'::interval))),
    CONSTRAINT jobs_data_is_at_most_1_mib_as_text CHECK ((octet_length((data)::text) <= 1048576)),
    CONSTRAINT jobs_finish_by_and_start_by_are_between_1970_and_9999 CHECK (((finish_by >= '1970-01-01 00:00:00+00'::timestamp with time zone) AND (finish_by < '9999-01-01 00:00:00+00'::timestamp with time zone) AND (start_by >= '1970-01-01 00:00:00+00'::timestamp with time zone) AND (start_by < '9999-01-01 00:00:00+00'::timestamp with time zone))),
    CONSTRAINT jobs_key_is_1_to_512_bytes CHECK (((octet_length(key) <= 512) AND (ltrim(key, '>'::text) <> ''::text))),
    CONSTRAINT jobs_key_that_begins_with_monitors_is_for_workers_alone CHECK (
CASE
    WHEN (key ~ '^>*monitors[.:]'::text) THEN has_column_privilege(SESSION_USER, 'hybrid_runner.jobs'::text, 'payload'::text, 'UPDATE'::text)
    ELSE NULL::boolean
END),
    CONSTRAINT jobs_kind_is_1_to_128_of_letters_digits_and_punctuation CHECK (((octet_length(kind) <= 128) AND (kind ~ '^[A-Za-z0-9_][A-Za-z0-9_.:/-]*$'::text))),
    CONSTRAINT jobs_live_states_are_queued_and_running CHECK ((state = ANY (ARRAY['queued'::hybrid_runner.job_state, 'running'::hybrid_runner.job_state]))),
    CONSTRAINT jobs_max_attempts_is_1_to_1000 CHECK (((max_attempts >= 1) AND (max_attempts <= 1000))),
    CONSTRAINT jobs_payload_is_at_most_1_mib_as_text CHECK ((octet_length((payload)::text) <= 1048576)),
    CONSTRAINT jobs_priority_is_0_to_9 CHECK (((priority >= 0) AND (priority <= 9))),
    CONSTRAINT jobs_queue_is_1_to_48_of_letters_digits_and_punctuation CHECK (((octet_length(queue) <= 48) AND (queue ~ '^[A-Za-z0-9_][A-Za-z0-9_.:/-]*$'::text))),
    CONSTRAINT jobs_run_at_is_between_1970_and_9999_or_infinity CHECK ((((run_at >= '1970-01-01 00:00:00+00'::timestamp with time zone) AND (run_at < '9999-01-01 00:00:00+00'::timestamp with time zone)) OR (run_at = 'infinity'::timestamp with time zone))),
    CONSTRAINT jobs_timeout_is_positive_and_at_most_ten_years CHECK (((timeout > '00:00:00'::interval) AND (timeout <= '3650 days'::interval) AND (date_part('epoch'::text, timeout) <= (315576000)::double precision))),
    CONSTRAINT jobs_traceparent_is_at_most_256_bytes CHECK ((octet_length(traceparent) <= 256))
)
WITH (autovacuum_vacuum_scale_factor='0.02', autovacuum_vacuum_threshold='1000', autovacuum_analyze_scale_factor='0.05', autovacuum_analyze_threshold='1000', autovacuum_vacuum_cost_delay='0');

CREATE VIEW hybrid_runner.all_jobs AS
 SELECT j.id,
    j.queue,
    j.kind,
    j.priority,
    j.payload,
    j.data,
    j.key,
    j.run_at,
    j.max_attempts,
    j.timeout,
    j.finish_by,
    j.start_by,
    j.max_snoozes,
    j.max_duration,
    j.finish_within,
    j.traceparent,
    j.enqueued_by,
    j.source,
    j.row_key,
    j.schedule,
    j.tick,
    j.state,
    j.attempt,
    j.snoozes,
    j.began_at,
    j.waits_for,
    j.claim,
    j.worker_id,
    j.started_at,
    j.progress,
    j.errors,
    j.history,
    j.version,
    j.cancel_requested_at,
    j.created_at,
    NULL::timestamp with time zone AS finished_at,
    NULL::jsonb AS result,
    NULL::bigint[] AS followed_by
   FROM hybrid_runner.jobs j
UNION ALL
 SELECT a.id,
    a.queue,
    a.kind,
    a.priority,
    a.payload,
    a.data,
    a.key,
    a.run_at,
    a.max_attempts,
    a.timeout,
    a.finish_by,
    a.start_by,
    a.max_snoozes,
    a.max_duration,
    a.finish_within,
    a.traceparent,
    a.enqueued_by,
    a.source,
    a.row_key,
    a.schedule,
    a.tick,
    a.state,
    a.attempt,
    a.snoozes,
    a.began_at,
    a.waits_for,
    a.claim,
    a.worker_id,
    a.started_at,
    a.progress,
    a.errors,
    a.history,
    a.version,
    a.cancel_requested_at,
    a.created_at,
    a.finished_at,
    a.result,
    a.followed_by
   FROM hybrid_runner.archive a;

CREATE TABLE hybrid_runner.archive_completed (
    id bigint CONSTRAINT archive_id_not_null NOT NULL,
    queue text CONSTRAINT archive_queue_not_null NOT NULL,
    kind text CONSTRAINT archive_kind_not_null NOT NULL,
    priority smallint CONSTRAINT archive_priority_not_null NOT NULL,
    payload jsonb CONSTRAINT archive_payload_not_null NOT NULL,
    data jsonb,
    key text,
    run_at timestamp with time zone CONSTRAINT archive_run_at_not_null NOT NULL,
    max_attempts smallint,
    timeout interval,
    finish_by timestamp with time zone,
    start_by timestamp with time zone,
    max_snoozes integer,
    max_duration interval,
    finish_within interval,
    traceparent text,
    enqueued_by text DEFAULT SESSION_USER CONSTRAINT archive_enqueued_by_not_null NOT NULL,
    source integer,
    row_key text,
    schedule text,
    tick timestamp with time zone,
    state hybrid_runner.job_state CONSTRAINT archive_state_not_null NOT NULL,
    attempt smallint CONSTRAINT archive_attempt_not_null NOT NULL,
    snoozes integer CONSTRAINT archive_snoozes_not_null NOT NULL,
    began_at timestamp with time zone,
    waits_for text,
    claim bigint,
    worker_id text,
    started_at timestamp with time zone,
    progress jsonb,
    errors jsonb,
    history jsonb,
    version integer CONSTRAINT archive_version_not_null NOT NULL,
    cancel_requested_at timestamp with time zone,
    created_at timestamp with time zone CONSTRAINT archive_created_at_not_null NOT NULL,
    finished_at timestamp with time zone DEFAULT clock_timestamp() CONSTRAINT archive_finished_at_not_null NOT NULL,
    result jsonb,
    followed_by bigint[],
    CONSTRAINT archive_result_is_at_most_1_mib_as_text CHECK (((pg_column_size(result) <= 32) OR (octet_length((result)::text) <= 1048576))),
    CONSTRAINT archive_states_are_final CHECK ((state = ANY (ARRAY['completed'::hybrid_runner.job_state, 'failed'::hybrid_runner.job_state, 'cancelled'::hybrid_runner.job_state])))
)
PARTITION BY RANGE (finished_at);

CREATE TABLE hybrid_runner.archive_completed_default (
    id bigint CONSTRAINT archive_id_not_null NOT NULL,
    queue text CONSTRAINT archive_queue_not_null NOT NULL,
    kind text CONSTRAINT archive_kind_not_null NOT NULL,
    priority smallint CONSTRAINT archive_priority_not_null NOT NULL,
    payload jsonb CONSTRAINT archive_payload_not_null NOT NULL,
    data jsonb,
    key text,
    run_at timestamp with time zone CONSTRAINT archive_run_at_not_null NOT NULL,
    max_attempts smallint,
    timeout interval,
    finish_by timestamp with time zone,
    start_by timestamp with time zone,
    max_snoozes integer,
    max_duration interval,
    finish_within interval,
    traceparent text,
    enqueued_by text DEFAULT SESSION_USER CONSTRAINT archive_enqueued_by_not_null NOT NULL,
    source integer,
    row_key text,
    schedule text,
    tick timestamp with time zone,
    state hybrid_runner.job_state CONSTRAINT archive_state_not_null NOT NULL,
    attempt smallint CONSTRAINT archive_attempt_not_null NOT NULL,
    snoozes integer CONSTRAINT archive_snoozes_not_null NOT NULL,
    began_at timestamp with time zone,
    waits_for text,
    claim bigint,
    worker_id text,
    started_at timestamp with time zone,
    progress jsonb,
    errors jsonb,
    history jsonb,
    version integer CONSTRAINT archive_version_not_null NOT NULL,
    cancel_requested_at timestamp with time zone,
    created_at timestamp with time zone CONSTRAINT archive_created_at_not_null NOT NULL,
    finished_at timestamp with time zone DEFAULT clock_timestamp() CONSTRAINT archive_finished_at_not_null NOT NULL,
    result jsonb,
    followed_by bigint[],
    CONSTRAINT archive_result_is_at_most_1_mib_as_text CHECK (((pg_column_size(result) <= 32) OR (octet_length((result)::text) <= 1048576))),
    CONSTRAINT archive_states_are_final CHECK ((state = ANY (ARRAY['completed'::hybrid_runner.job_state, 'failed'::hybrid_runner.job_state, 'cancelled'::hybrid_runner.job_state])))
);

CREATE TABLE hybrid_runner.archive_failed (
    id bigint CONSTRAINT archive_id_not_null NOT NULL,
    queue text CONSTRAINT archive_queue_not_null NOT NULL,
    kind text CONSTRAINT archive_kind_not_null NOT NULL,
    priority smallint CONSTRAINT archive_priority_not_null NOT NULL,
    payload jsonb CONSTRAINT archive_payload_not_null NOT NULL,
    data jsonb,
    key text,
    run_at timestamp with time zone CONSTRAINT archive_run_at_not_null NOT NULL,
    max_attempts smallint,
    timeout interval,
    finish_by timestamp with time zone,
    start_by timestamp with time zone,
    max_snoozes integer,
    max_duration interval,
    finish_within interval,
    traceparent text,
    enqueued_by text DEFAULT SESSION_USER CONSTRAINT archive_enqueued_by_not_null NOT NULL,
    source integer,
    row_key text,
    schedule text,
    tick timestamp with time zone,
    state hybrid_runner.job_state CONSTRAINT archive_state_not_null NOT NULL,
    attempt smallint CONSTRAINT archive_attempt_not_null NOT NULL,
    snoozes integer CONSTRAINT archive_snoozes_not_null NOT NULL,
    began_at timestamp with time zone,
    waits_for text,
    claim bigint,
    worker_id text,
    started_at timestamp with time zone,
    progress jsonb,
    errors jsonb,
    history jsonb,
    version integer CONSTRAINT archive_version_not_null NOT NULL,
    cancel_requested_at timestamp with time zone,
    created_at timestamp with time zone CONSTRAINT archive_created_at_not_null NOT NULL,
    finished_at timestamp with time zone DEFAULT clock_timestamp() CONSTRAINT archive_finished_at_not_null NOT NULL,
    result jsonb,
    followed_by bigint[],
    CONSTRAINT archive_result_is_at_most_1_mib_as_text CHECK (((pg_column_size(result) <= 32) OR (octet_length((result)::text) <= 1048576))),
    CONSTRAINT archive_states_are_final CHECK ((state = ANY (ARRAY['completed'::hybrid_runner.job_state, 'failed'::hybrid_runner.job_state, 'cancelled'::hybrid_runner.job_state])))
)
PARTITION BY RANGE (finished_at);

CREATE TABLE hybrid_runner.archive_failed_default (
    id bigint CONSTRAINT archive_id_not_null NOT NULL,
    queue text CONSTRAINT archive_queue_not_null NOT NULL,
    kind text CONSTRAINT archive_kind_not_null NOT NULL,
    priority smallint CONSTRAINT archive_priority_not_null NOT NULL,
    payload jsonb CONSTRAINT archive_payload_not_null NOT NULL,
    data jsonb,
    key text,
    run_at timestamp with time zone CONSTRAINT archive_run_at_not_null NOT NULL,
    max_attempts smallint,
    timeout interval,
    finish_by timestamp with time zone,
    start_by timestamp with time zone,
    max_snoozes integer,
    max_duration interval,
    finish_within interval,
    traceparent text,
    enqueued_by text DEFAULT SESSION_USER CONSTRAINT archive_enqueued_by_not_null NOT NULL,
    source integer,
    row_key text,
    schedule text,
    tick timestamp with time zone,
    state hybrid_runner.job_state CONSTRAINT archive_state_not_null NOT NULL,
    attempt smallint CONSTRAINT archive_attempt_not_null NOT NULL,
    snoozes integer CONSTRAINT archive_snoozes_not_null NOT NULL,
    began_at timestamp with time zone,
    waits_for text,
    claim bigint,
    worker_id text,
    started_at timestamp with time zone,
    progress jsonb,
    errors jsonb,
    history jsonb,
    version integer CONSTRAINT archive_version_not_null NOT NULL,
    cancel_requested_at timestamp with time zone,
    created_at timestamp with time zone CONSTRAINT archive_created_at_not_null NOT NULL,
    finished_at timestamp with time zone DEFAULT clock_timestamp() CONSTRAINT archive_finished_at_not_null NOT NULL,
    result jsonb,
    followed_by bigint[],
    CONSTRAINT archive_result_is_at_most_1_mib_as_text CHECK (((pg_column_size(result) <= 32) OR (octet_length((result)::text) <= 1048576))),
    CONSTRAINT archive_states_are_final CHECK ((state = ANY (ARRAY['completed'::hybrid_runner.job_state, 'failed'::hybrid_runner.job_state, 'cancelled'::hybrid_runner.job_state])))
);

CREATE TABLE hybrid_runner.retention (
    state hybrid_runner.job_state NOT NULL,
    kind text DEFAULT ''::text NOT NULL,
    keep interval NOT NULL,
    CONSTRAINT retention_keep_is_at_most_ten_years CHECK (((keep > '00:00:00'::interval) AND (keep <= '3653 days'::interval))),
    CONSTRAINT retention_states_are_final CHECK ((state = ANY (ARRAY['completed'::hybrid_runner.job_state, 'failed'::hybrid_runner.job_state, 'cancelled'::hybrid_runner.job_state])))
);

CREATE VIEW hybrid_runner.archive_halves AS
 SELECT s.half,
        CASE
            WHEN (count(*) FILTER (WHERE (r.kind = ''::text)) = cardinality(s.states)) THEN max(r.keep)
            ELSE NULL::interval
        END AS longest,
    md5(string_agg(format('%s %s %s'::text, r.state, r.kind, EXTRACT(epoch FROM r.keep)), ' '::text ORDER BY r.state, r.kind)) AS rules,
    min(r.keep) FILTER (WHERE (r.kind = ''::text)) AS shortest
   FROM (( VALUES ('archive_completed'::text,ARRAY['completed'::hybrid_runner.job_state]), ('archive_failed'::text,ARRAY['failed'::hybrid_runner.job_state, 'cancelled'::hybrid_runner.job_state])) s(half, states)
     LEFT JOIN hybrid_runner.retention r ON ((r.state = ANY (s.states))))
  GROUP BY s.half, s.states;

CREATE VIEW hybrid_runner.archive_partitions AS
 SELECT (half.relname)::text AS half,
    (part.relname)::text AS partition,
    (bound.text = 'DEFAULT'::text) AS is_default,
    COALESCE(("substring"(bound.text, 'FROM \(''([^'']+)''\)'::text))::timestamp with time zone, '-infinity'::timestamp with time zone) AS lower,
    ("substring"(bound.text, 'TO \(''([^'']+)''\)'::text))::timestamp with time zone AS upper
   FROM (((pg_inherits i
     JOIN pg_class half ON ((half.oid = i.inhparent)))
     JOIN pg_class part ON (((part.oid = i.inhrelid) AND (part.relnamespace = half.relnamespace))))
     CROSS JOIN LATERAL pg_get_expr(part.relpartbound, part.oid) bound(text))
  WHERE ((half.relname = ANY (ARRAY['archive_completed'::name, 'archive_failed'::name])) AND (half.relnamespace = ( SELECT n.oid
           FROM pg_namespace n
          WHERE (n.nspname = 'hybrid_runner'::name))));

CREATE TABLE hybrid_runner.archive_scans (
    partition text NOT NULL,
    scanned_at timestamp with time zone DEFAULT '-infinity'::timestamp with time zone NOT NULL,
    rules text DEFAULT ''::text NOT NULL,
    not_before timestamp with time zone DEFAULT '-infinity'::timestamp with time zone NOT NULL
);

CREATE TABLE hybrid_runner.callback_secret (
    is_one boolean DEFAULT true NOT NULL,
    secret bytea DEFAULT sha256(convert_to(((gen_random_uuid())::text || (gen_random_uuid())::text), 'UTF8'::name)) NOT NULL,
    CONSTRAINT callback_secret_is_one_check CHECK (is_one),
    CONSTRAINT callback_secret_secret_check CHECK ((octet_length(secret) >= 32))
);

CREATE SEQUENCE hybrid_runner.changes_channel_number
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;

CREATE SEQUENCE hybrid_runner.claims
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;

CREATE TABLE hybrid_runner.duties (
    name text NOT NULL,
    every interval NOT NULL,
    taken_at timestamp with time zone DEFAULT '-infinity'::timestamp with time zone NOT NULL,
    holder text,
    missed_turns integer DEFAULT 0 NOT NULL,
    CONSTRAINT duties_every_is_at_most_a_year CHECK (((every > '00:00:00'::interval) AND (every <= '366 days'::interval) AND (EXTRACT(year FROM every) = (0)::numeric) AND (EXTRACT(month FROM every) = (0)::numeric) AND ((EXTRACT(day FROM every) >= (0)::numeric) AND (EXTRACT(day FROM every) <= (366)::numeric))))
);

CREATE TABLE hybrid_runner.id_history (
    noted_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    next_id bigint NOT NULL
);

ALTER TABLE hybrid_runner.jobs ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME hybrid_runner.jobs_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE hybrid_runner.kinds (
    name text NOT NULL,
    queue text NOT NULL,
    on_end text,
    max_snoozes integer,
    max_duration interval,
    finish_within interval,
    payload_schema jsonb,
    seen_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    CONSTRAINT kinds_budgets_are_positive_and_at_most_ten_years CHECK (((max_snoozes >= 0) AND (max_duration > '00:00:00'::interval) AND (max_duration <= '3650 days'::interval) AND (finish_within > '00:00:00'::interval) AND (finish_within <= '3650 days'::interval))),
    CONSTRAINT kinds_name_is_1_to_128_of_letters_digits_and_punctuation CHECK ((name ~ '^[A-Za-z0-9_][A-Za-z0-9_.:/-]{0,127}$'::text)),
    CONSTRAINT kinds_on_end_is_1_to_128_of_letters_digits_and_punctuation CHECK ((on_end ~ '^[A-Za-z0-9_][A-Za-z0-9_.:/-]{0,127}$'::text)),
    CONSTRAINT kinds_payload_schema_is_at_most_64_kib_as_text CHECK ((octet_length((payload_schema)::text) <= 65536)),
    CONSTRAINT kinds_queue_is_1_to_48_of_letters_digits_and_punctuation CHECK ((queue ~ '^[A-Za-z0-9_][A-Za-z0-9_.:/-]{0,47}$'::text))
);

CREATE TABLE hybrid_runner.late_rows (
    source integer NOT NULL,
    row_key text NOT NULL,
    job_id bigint,
    state text DEFAULT 'missing'::text NOT NULL,
    why text NOT NULL,
    is_refused boolean DEFAULT false NOT NULL,
    seen text,
    tries integer DEFAULT 0 NOT NULL,
    since timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    next_try_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL
);

CREATE TABLE hybrid_runner.locks (
    name text NOT NULL
);

CREATE TABLE hybrid_runner.migrations (
    version integer NOT NULL,
    name text NOT NULL,
    checksum text NOT NULL,
    applied_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL
);

CREATE TABLE hybrid_runner.queues (
    name text NOT NULL,
    number integer NOT NULL,
    doorbell regclass,
    ring_within interval DEFAULT '00:01:00'::interval NOT NULL,
    paused_at timestamp with time zone,
    created_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    CONSTRAINT queues_name_is_1_to_48_of_letters_digits_and_punctuation CHECK ((name ~ '^[A-Za-z0-9_][A-Za-z0-9_.:/-]{0,47}$'::text)),
    CONSTRAINT queues_ring_within_is_at_most_a_year CHECK (((ring_within >= '00:00:00'::interval) AND (ring_within <= '366 days'::interval) AND (EXTRACT(year FROM ring_within) = (0)::numeric) AND (EXTRACT(month FROM ring_within) = (0)::numeric) AND ((EXTRACT(day FROM ring_within) >= (0)::numeric) AND (EXTRACT(day FROM ring_within) <= (366)::numeric))))
);

ALTER TABLE hybrid_runner.queues ALTER COLUMN number ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME hybrid_runner.queues_number_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE hybrid_runner.row_changes (
    id bigint NOT NULL,
    source integer NOT NULL,
    row_key text NOT NULL,
    what text NOT NULL,
    at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    CONSTRAINT row_changes_what_is_known CHECK ((what = ANY (ARRAY['cancelled'::text, 'gone'::text, 'wanted'::text])))
);

ALTER TABLE hybrid_runner.row_changes ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME hybrid_runner.row_changes_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE hybrid_runner.signals (
    id bigint NOT NULL,
    key text NOT NULL,
    payload jsonb DEFAULT 'null'::jsonb NOT NULL,
    sent_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    sent_by text DEFAULT SESSION_USER NOT NULL,
    once boolean DEFAULT false NOT NULL,
    newest_job bigint DEFAULT '9223372036854775807'::bigint NOT NULL,
    CONSTRAINT signals_key_is_1_to_512_bytes CHECK (((octet_length(key) >= 1) AND (octet_length(key) <= 512))),
    CONSTRAINT signals_payload_is_at_most_64_kib_as_text CHECK ((octet_length((payload)::text) <= 65536))
);

ALTER TABLE hybrid_runner.signals ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME hybrid_runner.signals_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE UNLOGGED TABLE hybrid_runner.sleepers (
    queue text NOT NULL,
    pid integer NOT NULL,
    is_asleep boolean NOT NULL
)
WITH (fillfactor='50', autovacuum_vacuum_threshold='1000', vacuum_truncate=off);

CREATE TABLE hybrid_runner.sources (
    id integer NOT NULL,
    relation regclass NOT NULL,
    relation_name text NOT NULL,
    kind text NOT NULL,
    queue text NOT NULL,
    owner text NOT NULL,
    definition jsonb NOT NULL,
    made_by text DEFAULT SESSION_USER NOT NULL,
    made_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    is_reconciled boolean DEFAULT true NOT NULL,
    note text,
    detaching_at timestamp with time zone
);

ALTER TABLE hybrid_runner.sources ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME hybrid_runner.sources_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE SEQUENCE hybrid_runner.stream_readers_until
    START WITH 0
    INCREMENT BY 1
    MINVALUE 0
    NO MAXVALUE
    CACHE 1;

CREATE TABLE hybrid_runner.taken_keys (
    key text NOT NULL,
    job_id bigint NOT NULL,
    until timestamp with time zone NOT NULL,
    taken_by text DEFAULT SESSION_USER NOT NULL
);

CREATE TABLE hybrid_runner.unreported_ends (
    id bigint NOT NULL,
    ended_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    taken_at timestamp with time zone
);

CREATE TABLE hybrid_runner.waits (
    id bigint NOT NULL,
    job_id bigint NOT NULL,
    run timestamp with time zone,
    key text NOT NULL,
    call integer,
    wake_of integer,
    signal_id bigint,
    payload jsonb,
    taken_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL
);

ALTER TABLE hybrid_runner.waits ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME hybrid_runner.waits_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE hybrid_runner.workers (
    id text NOT NULL,
    host text NOT NULL,
    pid integer NOT NULL,
    version text NOT NULL,
    queues jsonb NOT NULL,
    started_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    heartbeat_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    lease interval DEFAULT '00:00:30'::interval NOT NULL,
    first_claim bigint DEFAULT 0 NOT NULL,
    unbroken_since timestamp with time zone DEFAULT '-infinity'::timestamp with time zone NOT NULL,
    kinds_hash text DEFAULT ''::text NOT NULL,
    kinds text[] DEFAULT '{}'::text[] NOT NULL,
    schedules text[] DEFAULT '{}'::text[] NOT NULL,
    suspected_at timestamp with time zone,
    dead_at timestamp with time zone,
    rescued_at timestamp with time zone,
    running jsonb DEFAULT '{}'::jsonb NOT NULL,
    CONSTRAINT workers_host_is_at_most_1000_bytes CHECK ((octet_length(host) <= 1000)),
    CONSTRAINT workers_id_is_1_to_1000_bytes CHECK (((octet_length(id) >= 1) AND (octet_length(id) <= 1000))),
    CONSTRAINT workers_kinds_are_at_most_1_mib CHECK ((pg_column_size(kinds) <= 1048576)),
    CONSTRAINT workers_kinds_hash_is_at_most_64_bytes CHECK ((octet_length(kinds_hash) <= 64)),
    CONSTRAINT workers_lease_is_at_most_a_day CHECK (((lease > '00:00:00'::interval) AND (lease <= '1 day'::interval) AND (EXTRACT(year FROM lease) = (0)::numeric) AND (EXTRACT(month FROM lease) = (0)::numeric) AND ((EXTRACT(day FROM lease) >= (0)::numeric) AND (EXTRACT(day FROM lease) <= (1)::numeric)))),
    CONSTRAINT workers_queues_are_numbers_by_queue CHECK (((jsonb_typeof(queues) = 'object'::text) AND (pg_column_size(queues) <= 1048576) AND (NOT (queues @? 'strict $.*?(!(((@.type() == "number" && @ >= 0) && @ <= 1000000) && @ == @.floor()))'::jsonpath)))),
    CONSTRAINT workers_running_are_numbers_by_queue CHECK (((jsonb_typeof(running) = 'object'::text) AND (pg_column_size(running) <= 1048576) AND (NOT (running @? 'strict $.*?(!(((@.type() == "number" && @ >= 0) && @ <= 1000000) && @ == @.floor()))'::jsonpath)))),
    CONSTRAINT workers_schedules_are_at_most_1_mib CHECK ((pg_column_size(schedules) <= 1048576)),
    CONSTRAINT workers_times_are_between_1970_and_9999 CHECK (((started_at >= '1970-01-01 00:00:00+00'::timestamp with time zone) AND (started_at < '9999-01-01 00:00:00+00'::timestamp with time zone) AND (heartbeat_at >= '1970-01-01 00:00:00+00'::timestamp with time zone) AND (heartbeat_at < '9999-01-01 00:00:00+00'::timestamp with time zone) AND (suspected_at >= '1970-01-01 00:00:00+00'::timestamp with time zone) AND (suspected_at < '9999-01-01 00:00:00+00'::timestamp with time zone) AND (dead_at >= '1970-01-01 00:00:00+00'::timestamp with time zone) AND (dead_at < '9999-01-01 00:00:00+00'::timestamp with time zone) AND (rescued_at >= '1970-01-01 00:00:00+00'::timestamp with time zone) AND (rescued_at < '9999-01-01 00:00:00+00'::timestamp with time zone) AND (unbroken_since < '9999-01-01 00:00:00+00'::timestamp with time zone))),
    CONSTRAINT workers_version_is_at_most_1000_bytes CHECK ((octet_length(version) <= 1000))
);

CREATE TABLE hybrid_runner.xid_history (
    noted_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    next_xid bigint NOT NULL
);

CREATE TABLE hybrid_runner.zone_rules (
    is_one boolean DEFAULT true NOT NULL,
    server_version text DEFAULT current_setting('server_version'::text) NOT NULL,
    CONSTRAINT zone_rules_is_one_check CHECK (is_one)
);

ALTER TABLE ONLY hybrid_runner.archive ATTACH PARTITION hybrid_runner.archive_completed FOR VALUES IN ('completed');

ALTER TABLE ONLY hybrid_runner.archive_completed ATTACH PARTITION hybrid_runner.archive_completed_default DEFAULT;

ALTER TABLE ONLY hybrid_runner.archive ATTACH PARTITION hybrid_runner.archive_failed FOR VALUES IN ('failed', 'cancelled');

ALTER TABLE ONLY hybrid_runner.archive_failed ATTACH PARTITION hybrid_runner.archive_failed_default DEFAULT;

ALTER TABLE ONLY hybrid_runner.archive
    ADD CONSTRAINT archive_pkey PRIMARY KEY (id, finished_at, state);

ALTER TABLE ONLY hybrid_runner.archive_completed
    ADD CONSTRAINT archive_completed_pkey PRIMARY KEY (id, finished_at, state);

ALTER TABLE ONLY hybrid_runner.archive_completed_default
    ADD CONSTRAINT archive_completed_default_pkey PRIMARY KEY (id, finished_at, state);

ALTER TABLE ONLY hybrid_runner.archive_failed
    ADD CONSTRAINT archive_failed_pkey PRIMARY KEY (id, finished_at, state);

ALTER TABLE ONLY hybrid_runner.archive_failed_default
    ADD CONSTRAINT archive_failed_default_pkey PRIMARY KEY (id, finished_at, state);

ALTER TABLE ONLY hybrid_runner.archive_scans
    ADD CONSTRAINT archive_scans_pkey PRIMARY KEY (partition);

ALTER TABLE ONLY hybrid_runner.callback_secret
    ADD CONSTRAINT callback_secret_pkey PRIMARY KEY (is_one);

ALTER TABLE ONLY hybrid_runner.duties
    ADD CONSTRAINT duties_pkey PRIMARY KEY (name);

ALTER TABLE ONLY hybrid_runner.id_history
    ADD CONSTRAINT id_history_pkey PRIMARY KEY (noted_at);

ALTER TABLE ONLY hybrid_runner.jobs
    ADD CONSTRAINT jobs_pkey PRIMARY KEY (id);

ALTER TABLE ONLY hybrid_runner.kinds
    ADD CONSTRAINT kinds_pkey PRIMARY KEY (name);

ALTER TABLE ONLY hybrid_runner.late_rows
    ADD CONSTRAINT late_rows_pkey PRIMARY KEY (source, row_key);

ALTER TABLE ONLY hybrid_runner.locks
    ADD CONSTRAINT locks_pkey PRIMARY KEY (name);

ALTER TABLE ONLY hybrid_runner.migrations
    ADD CONSTRAINT migrations_pkey PRIMARY KEY (version);

ALTER TABLE ONLY hybrid_runner.queues
    ADD CONSTRAINT queues_number_key UNIQUE (number);

ALTER TABLE ONLY hybrid_runner.queues
    ADD CONSTRAINT queues_pkey PRIMARY KEY (name);

ALTER TABLE ONLY hybrid_runner.retention
    ADD CONSTRAINT retention_pkey PRIMARY KEY (state, kind);

ALTER TABLE ONLY hybrid_runner.row_changes
    ADD CONSTRAINT row_changes_pkey PRIMARY KEY (id);

ALTER TABLE ONLY hybrid_runner.schedules
    ADD CONSTRAINT schedules_pkey PRIMARY KEY (name);

ALTER TABLE ONLY hybrid_runner.signals
    ADD CONSTRAINT signals_pkey PRIMARY KEY (id);

ALTER TABLE ONLY hybrid_runner.sleepers
    ADD CONSTRAINT sleepers_pkey PRIMARY KEY (queue, pid);

ALTER TABLE ONLY hybrid_runner.sources
    ADD CONSTRAINT sources_one_per_table_and_kind UNIQUE (relation, kind);

ALTER TABLE ONLY hybrid_runner.sources
    ADD CONSTRAINT sources_pkey PRIMARY KEY (id);

ALTER TABLE ONLY hybrid_runner.taken_keys
    ADD CONSTRAINT taken_keys_pkey PRIMARY KEY (key);

ALTER TABLE ONLY hybrid_runner.unreported_ends
    ADD CONSTRAINT unreported_ends_pkey PRIMARY KEY (id);

ALTER TABLE ONLY hybrid_runner.waits
    ADD CONSTRAINT waits_pkey PRIMARY KEY (id);

ALTER TABLE ONLY hybrid_runner.workers
    ADD CONSTRAINT workers_pkey PRIMARY KEY (id);

ALTER TABLE ONLY hybrid_runner.xid_history
    ADD CONSTRAINT xid_history_pkey PRIMARY KEY (noted_at);

ALTER TABLE ONLY hybrid_runner.zone_rules
    ADD CONSTRAINT zone_rules_pkey PRIMARY KEY (is_one);

CREATE INDEX jobs_due ON hybrid_runner.jobs USING btree (queue, priority, run_at, id) WHERE (state = 'queued'::hybrid_runner.job_state);

CREATE INDEX jobs_of_schedules ON hybrid_runner.jobs USING btree (schedule) WHERE (schedule IS NOT NULL);

CREATE UNIQUE INDEX jobs_one_live_job_per_key ON hybrid_runner.jobs USING btree (key) WHERE (key IS NOT NULL);

CREATE UNIQUE INDEX jobs_one_live_job_per_row ON hybrid_runner.jobs USING btree (source, row_key) WHERE (source IS NOT NULL);

CREATE INDEX jobs_waiting ON hybrid_runner.jobs USING btree (waits_for, id) WHERE ((waits_for IS NOT NULL) AND (state = 'queued'::hybrid_runner.job_state));

CREATE INDEX jobs_with_a_time_limit ON hybrid_runner.jobs USING btree (kind, id) WHERE ((state = 'queued'::hybrid_runner.job_state) AND ((began_at IS NOT NULL) OR (finish_by IS NOT NULL) OR (finish_within IS NOT NULL) OR (start_by IS NOT NULL)));

CREATE INDEX schedules_due ON hybrid_runner.schedules USING btree (next_at) WHERE (paused_at IS NULL);

CREATE INDEX schedules_waiting ON hybrid_runner.schedules USING btree (name) WHERE (waiting_ticks IS NOT NULL);

CREATE INDEX signals_by_age ON hybrid_runner.signals USING btree (sent_at);

CREATE INDEX signals_by_key ON hybrid_runner.signals USING btree (key, newest_job, id);

CREATE UNIQUE INDEX signals_once ON hybrid_runner.signals USING btree (key) WHERE once;

CREATE INDEX signals_unnumbered ON hybrid_runner.signals USING btree (id) WHERE (newest_job = '9223372036854775807'::bigint);

CREATE INDEX taken_keys_by_time ON hybrid_runner.taken_keys USING btree (until);

CREATE INDEX waits_by_age ON hybrid_runner.waits USING btree (taken_at);

CREATE INDEX waits_by_signal ON hybrid_runner.waits USING btree (signal_id) WHERE (signal_id IS NOT NULL);

CREATE UNIQUE INDEX waits_each_signal_once ON hybrid_runner.waits USING btree (job_id, signal_id);

CREATE UNIQUE INDEX waits_one_for_each_call ON hybrid_runner.waits USING btree (job_id, run, key, call);

CREATE UNIQUE INDEX waits_one_for_each_wake ON hybrid_runner.waits USING btree (job_id, run, wake_of);

ALTER INDEX hybrid_runner.archive_completed_pkey ATTACH PARTITION hybrid_runner.archive_completed_default_pkey;

ALTER INDEX hybrid_runner.archive_pkey ATTACH PARTITION hybrid_runner.archive_completed_pkey;

ALTER INDEX hybrid_runner.archive_failed_pkey ATTACH PARTITION hybrid_runner.archive_failed_default_pkey;

ALTER INDEX hybrid_runner.archive_pkey ATTACH PARTITION hybrid_runner.archive_failed_pkey;

CREATE TRIGGER check_schedule BEFORE INSERT OR UPDATE OF name, kind, queue, payload, priority, max_attempts, timeout, cron, every, at, timezone, overlap, missed, catch_up, jitter, starts_at, ends_at, paused_at, declared, made_by ON hybrid_runner.schedules FOR EACH ROW EXECUTE FUNCTION hybrid_runner.check_schedule();

CREATE TRIGGER keep_source_duty AFTER INSERT OR DELETE OR UPDATE ON hybrid_runner.sources FOR EACH STATEMENT EXECUTE FUNCTION hybrid_runner.keep_source_duty();

CREATE TRIGGER ring_for_inserted_jobs AFTER INSERT ON hybrid_runner.jobs REFERENCING NEW TABLE AS inserted FOR EACH STATEMENT EXECUTE FUNCTION hybrid_runner.ring_for_inserted_jobs();

CREATE TRIGGER ring_for_row_changes AFTER INSERT ON hybrid_runner.row_changes FOR EACH STATEMENT EXECUTE FUNCTION hybrid_runner.ring_for_row_changes();

CREATE TRIGGER ring_for_schedules AFTER INSERT OR DELETE OR UPDATE OF name, kind, queue, payload, priority, max_attempts, timeout, cron, every, at, timezone, overlap, missed, catch_up, jitter, starts_at, ends_at, paused_at, declared, made_by ON hybrid_runner.schedules FOR EACH STATEMENT EXECUTE FUNCTION hybrid_runner.ring_for_schedules();

CREATE TRIGGER ring_for_signals AFTER INSERT ON hybrid_runner.signals REFERENCING NEW TABLE AS inserted FOR EACH STATEMENT EXECUTE FUNCTION hybrid_runner.ring_for_signals();

GRANT USAGE ON SCHEMA hybrid_runner TO hybrid_runner_producer;

GRANT USAGE ON SCHEMA hybrid_runner TO hybrid_runner_worker;

GRANT USAGE ON SCHEMA hybrid_runner TO hybrid_runner_reader;

REVOKE ALL ON FUNCTION hybrid_runner.add_archive_partition(half text, opens timestamp with time zone, closes timestamp with time zone) FROM PUBLIC;

REVOKE ALL ON FUNCTION hybrid_runner.amend(id bigint, version integer, payload jsonb, priority integer, run_at timestamp with time zone, data jsonb) FROM PUBLIC;

GRANT ALL ON FUNCTION hybrid_runner.amend(id bigint, version integer, payload jsonb, priority integer, run_at timestamp with time zone, data jsonb) TO hybrid_runner_worker;

REVOKE ALL ON FUNCTION hybrid_runner.apply_row_changes(source integer, behind bigint, most integer) FROM PUBLIC;

GRANT ALL ON FUNCTION hybrid_runner.apply_row_changes(source integer, behind bigint, most integer) TO hybrid_runner_worker;

REVOKE ALL ON FUNCTION hybrid_runner.apply_to_jobs(source integer, keys text[], whats text[]) FROM PUBLIC;

GRANT ALL ON FUNCTION hybrid_runner.apply_to_jobs(source integer, keys text[], whats text[]) TO hybrid_runner_worker;

GRANT SELECT,INSERT ON TABLE hybrid_runner.archive TO hybrid_runner_worker;

GRANT SELECT ON TABLE hybrid_runner.archive TO hybrid_runner_reader;

REVOKE ALL ON FUNCTION hybrid_runner.archived(ids bigint[]) FROM PUBLIC;

GRANT ALL ON FUNCTION hybrid_runner.archived(ids bigint[]) TO hybrid_runner_worker;

GRANT ALL ON FUNCTION hybrid_runner.archived(ids bigint[]) TO hybrid_runner_reader;

REVOKE ALL ON FUNCTION hybrid_runner.begin_successor(id bigint, claim bigint) FROM PUBLIC;

GRANT ALL ON FUNCTION hybrid_runner.begin_successor(id bigint, claim bigint) TO hybrid_runner_worker;

REVOKE ALL ON FUNCTION hybrid_runner.cancel(id bigint, reason text, by_row boolean) FROM PUBLIC;

GRANT ALL ON FUNCTION hybrid_runner.cancel(id bigint, reason text, by_row boolean) TO hybrid_runner_worker;

REVOKE ALL ON FUNCTION hybrid_runner.cancel_jobs_without_rows(source integer, behind text, most integer, OUT last_key text, OUT cancelled integer) FROM PUBLIC;

GRANT ALL ON FUNCTION hybrid_runner.cancel_jobs_without_rows(source integer, behind text, most integer, OUT last_key text, OUT cancelled integer) TO hybrid_runner_worker;

REVOKE ALL ON FUNCTION hybrid_runner.changes_channel() FROM PUBLIC;

GRANT ALL ON FUNCTION hybrid_runner.changes_channel() TO hybrid_runner_worker;

REVOKE ALL ON FUNCTION hybrid_runner.check_interval(field text, given interval, lowest interval, highest interval, bounds text) FROM PUBLIC;

REVOKE ALL ON FUNCTION hybrid_runner.check_key_use(key text, on_conflict text, run_at timestamp with time zone, delay interval, start_by timestamp with time zone, max_wait interval, unique_for interval, max_items integer) FROM PUBLIC;

REVOKE ALL ON FUNCTION hybrid_runner.check_name(field text, given text, most integer) FROM PUBLIC;

REVOKE ALL ON FUNCTION hybrid_runner.check_schedule() FROM PUBLIC;

REVOKE ALL ON FUNCTION hybrid_runner.check_time(field text, given timestamp with time zone) FROM PUBLIC;

REVOKE ALL ON FUNCTION hybrid_runner.check_word(field text, given text, words text[]) FROM PUBLIC;

REVOKE ALL ON FUNCTION hybrid_runner.check_zone(zone text) FROM PUBLIC;

GRANT SELECT ON TABLE hybrid_runner.schedules TO hybrid_runner_worker;

GRANT SELECT ON TABLE hybrid_runner.schedules TO hybrid_runner_reader;

GRANT SELECT(name),INSERT(name) ON TABLE hybrid_runner.schedules TO hybrid_runner_producer;

GRANT INSERT(kind) ON TABLE hybrid_runner.schedules TO hybrid_runner_producer;

GRANT INSERT(queue) ON TABLE hybrid_runner.schedules TO hybrid_runner_producer;

GRANT INSERT(payload) ON TABLE hybrid_runner.schedules TO hybrid_runner_producer;

GRANT INSERT(priority) ON TABLE hybrid_runner.schedules TO hybrid_runner_producer;

GRANT INSERT(max_attempts) ON TABLE hybrid_runner.schedules TO hybrid_runner_producer;

GRANT INSERT(timeout) ON TABLE hybrid_runner.schedules TO hybrid_runner_producer;

GRANT INSERT(cron) ON TABLE hybrid_runner.schedules TO hybrid_runner_producer;

GRANT INSERT(every) ON TABLE hybrid_runner.schedules TO hybrid_runner_producer;

GRANT INSERT(at) ON TABLE hybrid_runner.schedules TO hybrid_runner_producer;

GRANT INSERT(timezone) ON TABLE hybrid_runner.schedules TO hybrid_runner_producer;

GRANT INSERT(overlap) ON TABLE hybrid_runner.schedules TO hybrid_runner_producer;

GRANT INSERT(missed) ON TABLE hybrid_runner.schedules TO hybrid_runner_producer;

GRANT INSERT(catch_up) ON TABLE hybrid_runner.schedules TO hybrid_runner_producer;

GRANT INSERT(jitter) ON TABLE hybrid_runner.schedules TO hybrid_runner_producer;

GRANT INSERT(starts_at) ON TABLE hybrid_runner.schedules TO hybrid_runner_producer;

GRANT INSERT(ends_at) ON TABLE hybrid_runner.schedules TO hybrid_runner_producer;

GRANT INSERT(paused_at) ON TABLE hybrid_runner.schedules TO hybrid_runner_producer;

GRANT UPDATE(paused_at) ON TABLE hybrid_runner.schedules TO hybrid_runner_worker;

GRANT SELECT(next_at) ON TABLE hybrid_runner.schedules TO hybrid_runner_producer;

REVOKE ALL ON FUNCTION hybrid_runner.count_ticks(its hybrid_runner.schedules, since timestamp with time zone, until timestamp with time zone) FROM PUBLIC;

REVOKE ALL ON FUNCTION hybrid_runner.cron_ticks(cron text, zone text, since timestamp with time zone, until timestamp with time zone, most integer) FROM PUBLIC;

REVOKE ALL ON FUNCTION hybrid_runner.declare_schedules(names text[], kinds text[], payloads text[], crons text[], everys interval[], ats timestamp with time zone[], timezones text[], queues text[], priorities integer[], max_attempts integer[], timeouts interval[], "overlaps" text[], missed text[], catch_ups interval[], jitters interval[], starts_at timestamp with time zone[], ends_at timestamp with time zone[]) FROM PUBLIC;

GRANT ALL ON FUNCTION hybrid_runner.declare_schedules(names text[], kinds text[], payloads text[], crons text[], everys interval[], ats timestamp with time zone[], timezones text[], queues text[], priorities integer[], max_attempts integer[], timeouts interval[], "overlaps" text[], missed text[], catch_ups interval[], jitters interval[], starts_at timestamp with time zone[], ends_at timestamp with time zone[]) TO hybrid_runner_worker;

REVOKE ALL ON FUNCTION hybrid_runner.declared_now() FROM PUBLIC;

REVOKE ALL ON FUNCTION hybrid_runner.end_expired(ids bigint[], versions integer[], errors text[]) FROM PUBLIC;

GRANT ALL ON FUNCTION hybrid_runner.end_expired(ids bigint[], versions integer[], errors text[]) TO hybrid_runner_worker;

REVOKE ALL ON FUNCTION hybrid_runner.end_jobs(ids bigint[], claims bigint[], states text[], results text[], errors text[], cancelled_at timestamp with time zone, traceparents text[], follow_ups text[], kinds text[], on_ends text[], attached boolean, by_row boolean, put_off boolean) FROM PUBLIC;

GRANT ALL ON FUNCTION hybrid_runner.end_jobs(ids bigint[], claims bigint[], states text[], results text[], errors text[], cancelled_at timestamp with time zone, traceparents text[], follow_ups text[], kinds text[], on_ends text[], attached boolean, by_row boolean, put_off boolean) TO hybrid_runner_worker;

REVOKE ALL ON FUNCTION hybrid_runner.end_unbegun(past interval, after_kind text, after_id bigint, most integer) FROM PUBLIC;

GRANT ALL ON FUNCTION hybrid_runner.end_unbegun(past interval, after_kind text, after_id bigint, most integer) TO hybrid_runner_worker;

REVOKE ALL ON FUNCTION hybrid_runner.ended_payload(id bigint, kind text, key text, state text, payload jsonb, data jsonb, result jsonb, errors jsonb) FROM PUBLIC;

GRANT ALL ON FUNCTION hybrid_runner.ended_payload(id bigint, kind text, key text, state text, payload jsonb, data jsonb, result jsonb, errors jsonb) TO hybrid_runner_worker;

REVOKE ALL ON FUNCTION hybrid_runner.enqueue(kind text, payload jsonb, queue text, key text, priority integer, run_at timestamp with time zone, delay interval, max_attempts integer, timeout interval, finish_by timestamp with time zone, data jsonb, traceparent text, on_conflict text, max_snoozes integer, max_duration interval, finish_within interval, start_by timestamp with time zone, max_wait interval, unique_for interval, max_items integer) FROM PUBLIC;

GRANT ALL ON FUNCTION hybrid_runner.enqueue(kind text, payload jsonb, queue text, key text, priority integer, run_at timestamp with time zone, delay interval, max_attempts integer, timeout interval, finish_by timestamp with time zone, data jsonb, traceparent text, on_conflict text, max_snoozes integer, max_duration interval, finish_within interval, start_by timestamp with time zone, max_wait interval, unique_for interval, max_items integer) TO hybrid_runner_producer;

GRANT ALL ON FUNCTION hybrid_runner.enqueue(kind text, payload jsonb, queue text, key text, priority integer, run_at timestamp with time zone, delay interval, max_attempts integer, timeout interval, finish_by timestamp with time zone, data jsonb, traceparent text, on_conflict text, max_snoozes integer, max_duration interval, finish_within interval, start_by timestamp with time zone, max_wait interval, unique_for interval, max_items integer) TO hybrid_runner_worker;

REVOKE ALL ON FUNCTION hybrid_runner.enqueue_job(kind text, payload jsonb, queue text, key text, priority integer, run_at timestamp with time zone, delay interval, max_attempts integer, timeout interval, finish_by timestamp with time zone, data jsonb, traceparent text, on_conflict text, max_snoozes integer, max_duration interval, finish_within interval, start_by timestamp with time zone, max_wait interval, unique_for interval, max_items integer) FROM PUBLIC;

GRANT ALL ON FUNCTION hybrid_runner.enqueue_job(kind text, payload jsonb, queue text, key text, priority integer, run_at timestamp with time zone, delay interval, max_attempts integer, timeout interval, finish_by timestamp with time zone, data jsonb, traceparent text, on_conflict text, max_snoozes integer, max_duration interval, finish_within interval, start_by timestamp with time zone, max_wait interval, unique_for interval, max_items integer) TO hybrid_runner_producer;

GRANT ALL ON FUNCTION hybrid_runner.enqueue_job(kind text, payload jsonb, queue text, key text, priority integer, run_at timestamp with time zone, delay interval, max_attempts integer, timeout interval, finish_by timestamp with time zone, data jsonb, traceparent text, on_conflict text, max_snoozes integer, max_duration interval, finish_within interval, start_by timestamp with time zone, max_wait interval, unique_for interval, max_items integer) TO hybrid_runner_worker;

REVOKE ALL ON FUNCTION hybrid_runner.enqueue_jobs(kinds text[], payloads text[], queues text[], priorities integer[], run_ats timestamp with time zone[], traceparents text[], max_attempts integer[], timeouts interval[], finish_bys timestamp with time zone[], data text[], delays interval[], max_snoozes integer[], max_durations interval[], finish_withins interval[], start_bys timestamp with time zone[], keys text[], on_conflict text, max_wait interval, unique_for interval, max_items integer) FROM PUBLIC;

GRANT ALL ON FUNCTION hybrid_runner.enqueue_jobs(kinds text[], payloads text[], queues text[], priorities integer[], run_ats timestamp with time zone[], traceparents text[], max_attempts integer[], timeouts interval[], finish_bys timestamp with time zone[], data text[], delays interval[], max_snoozes integer[], max_durations interval[], finish_withins interval[], start_bys timestamp with time zone[], keys text[], on_conflict text, max_wait interval, unique_for interval, max_items integer) TO hybrid_runner_producer;

GRANT ALL ON FUNCTION hybrid_runner.enqueue_jobs(kinds text[], payloads text[], queues text[], priorities integer[], run_ats timestamp with time zone[], traceparents text[], max_attempts integer[], timeouts interval[], finish_bys timestamp with time zone[], data text[], delays interval[], max_snoozes integer[], max_durations interval[], finish_withins interval[], start_bys timestamp with time zone[], keys text[], on_conflict text, max_wait interval, unique_for interval, max_items integer) TO hybrid_runner_worker;

REVOKE ALL ON FUNCTION hybrid_runner.estimate(query text) FROM PUBLIC;

REVOKE ALL ON FUNCTION hybrid_runner.find_growth(longer_than interval) FROM PUBLIC;

GRANT ALL ON FUNCTION hybrid_runner.find_growth(longer_than interval) TO hybrid_runner_worker;

REVOKE ALL ON FUNCTION hybrid_runner.find_lockers(relation regclass, xmax text) FROM PUBLIC;

GRANT ALL ON FUNCTION hybrid_runner.find_lockers(relation regclass, xmax text) TO hybrid_runner_worker;

REVOKE ALL ON FUNCTION hybrid_runner.fire_schedule(its hybrid_runner.schedules, moment timestamp with time zone) FROM PUBLIC;

REVOKE ALL ON FUNCTION hybrid_runner.fire_schedules(most integer) FROM PUBLIC;

GRANT ALL ON FUNCTION hybrid_runner.fire_schedules(most integer) TO hybrid_runner_worker;

REVOKE ALL ON FUNCTION hybrid_runner.free_tick(schedule text, id bigint) FROM PUBLIC;

GRANT ALL ON FUNCTION hybrid_runner.free_tick(schedule text, id bigint) TO hybrid_runner_worker;

REVOKE ALL ON FUNCTION hybrid_runner.give_free_keys() FROM PUBLIC;

GRANT ALL ON FUNCTION hybrid_runner.give_free_keys() TO hybrid_runner_worker;

REVOKE ALL ON FUNCTION hybrid_runner.has_room(id bigint, kind text, items jsonb, max_items integer) FROM PUBLIC;

REVOKE ALL ON FUNCTION hybrid_runner.horizon_age() FROM PUBLIC;

GRANT ALL ON FUNCTION hybrid_runner.horizon_age() TO hybrid_runner_worker;

GRANT ALL ON FUNCTION hybrid_runner.horizon_age() TO hybrid_runner_reader;

REVOKE ALL ON FUNCTION hybrid_runner.is_cron_day(day date, days integer[], weekdays integer[], either_will_do boolean) FROM PUBLIC;

REVOKE ALL ON FUNCTION hybrid_runner.items_of(payload jsonb) FROM PUBLIC;

REVOKE ALL ON FUNCTION hybrid_runner.jittered(name text, tick timestamp with time zone, jitter interval) FROM PUBLIC;

REVOKE ALL ON FUNCTION hybrid_runner.join_key(columns jsonb, payload jsonb, data jsonb, collects boolean, max_wait interval, max_items integer) FROM PUBLIC;

REVOKE ALL ON FUNCTION hybrid_runner.join_sleepers(queues text[]) FROM PUBLIC;

GRANT ALL ON FUNCTION hybrid_runner.join_sleepers(queues text[]) TO hybrid_runner_worker;

REVOKE ALL ON FUNCTION hybrid_runner.keep(state text, keep interval, kind text) FROM PUBLIC;

GRANT ALL ON FUNCTION hybrid_runner.keep(state text, keep interval, kind text) TO hybrid_runner_worker;

REVOKE ALL ON FUNCTION hybrid_runner.keep_schedule_duty() FROM PUBLIC;

REVOKE ALL ON FUNCTION hybrid_runner.keep_source_duty() FROM PUBLIC;

REVOKE ALL ON FUNCTION hybrid_runner.key_of(kind text, payload jsonb, VARIADIC names text[]) FROM PUBLIC;

GRANT ALL ON FUNCTION hybrid_runner.key_of(kind text, payload jsonb, VARIADIC names text[]) TO hybrid_runner_producer;

GRANT ALL ON FUNCTION hybrid_runner.key_of(kind text, payload jsonb, VARIADIC names text[]) TO hybrid_runner_worker;

REVOKE ALL ON FUNCTION hybrid_runner.last_in_line(key text) FROM PUBLIC;

REVOKE ALL ON FUNCTION hybrid_runner.leave_bell(queue text, worker_id text, is_muted boolean) FROM PUBLIC;

GRANT ALL ON FUNCTION hybrid_runner.leave_bell(queue text, worker_id text, is_muted boolean) TO hybrid_runner_worker;

REVOKE ALL ON FUNCTION hybrid_runner.leave_sleepers() FROM PUBLIC;

GRANT ALL ON FUNCTION hybrid_runner.leave_sleepers() TO hybrid_runner_worker;

REVOKE ALL ON FUNCTION hybrid_runner.let_go(id bigint, key text, schedule text) FROM PUBLIC;

GRANT ALL ON FUNCTION hybrid_runner.let_go(id bigint, key text, schedule text) TO hybrid_runner_worker;

REVOKE ALL ON FUNCTION hybrid_runner.make_archive_partitions(days_ahead integer) FROM PUBLIC;

GRANT ALL ON FUNCTION hybrid_runner.make_archive_partitions(days_ahead integer) TO hybrid_runner_worker;

REVOKE ALL ON FUNCTION hybrid_runner.missed_ticks(its hybrid_runner.schedules, moment timestamp with time zone, OUT wanted timestamp with time zone[], OUT weight integer, OUT is_missed boolean, OUT dropped bigint, OUT ticked_until timestamp with time zone) FROM PUBLIC;

REVOKE ALL ON FUNCTION hybrid_runner.missing_jobs(query text, key_parts text[], most integer) FROM PUBLIC;

GRANT ALL ON FUNCTION hybrid_runner.missing_jobs(query text, key_parts text[], most integer) TO hybrid_runner_worker;

REVOKE ALL ON FUNCTION hybrid_runner.mute_bell(queue text, milliseconds integer, mode text, leave_sleepers boolean) FROM PUBLIC;

GRANT ALL ON FUNCTION hybrid_runner.mute_bell(queue text, milliseconds integer, mode text, leave_sleepers boolean) TO hybrid_runner_worker;

REVOKE ALL ON FUNCTION hybrid_runner.nearest_word(given text, words text[]) FROM PUBLIC;

REVOKE ALL ON FUNCTION hybrid_runner.next_fire(cron text, timezone text, after timestamp with time zone) FROM PUBLIC;

GRANT ALL ON FUNCTION hybrid_runner.next_fire(cron text, timezone text, after timestamp with time zone) TO hybrid_runner_producer;

GRANT ALL ON FUNCTION hybrid_runner.next_fire(cron text, timezone text, after timestamp with time zone) TO hybrid_runner_worker;

GRANT ALL ON FUNCTION hybrid_runner.next_fire(cron text, timezone text, after timestamp with time zone) TO hybrid_runner_reader;

REVOKE ALL ON FUNCTION hybrid_runner.next_on_clock(clock timestamp without time zone, minutes integer[], hours integer[], days integer[], months integer[], weekdays integer[], either_will_do boolean) FROM PUBLIC;

REVOKE ALL ON FUNCTION hybrid_runner.next_tick(past boolean) FROM PUBLIC;

GRANT ALL ON FUNCTION hybrid_runner.next_tick(past boolean) TO hybrid_runner_worker;

REVOKE ALL ON FUNCTION hybrid_runner.next_ticks(cron text, timezone text, most integer, after timestamp with time zone) FROM PUBLIC;

GRANT ALL ON FUNCTION hybrid_runner.next_ticks(cron text, timezone text, most integer, after timestamp with time zone) TO hybrid_runner_producer;

GRANT ALL ON FUNCTION hybrid_runner.next_ticks(cron text, timezone text, most integer, after timestamp with time zone) TO hybrid_runner_worker;

GRANT ALL ON FUNCTION hybrid_runner.next_ticks(cron text, timezone text, most integer, after timestamp with time zone) TO hybrid_runner_reader;

REVOKE ALL ON FUNCTION hybrid_runner.next_ticks_of(name text, most integer) FROM PUBLIC;

GRANT ALL ON FUNCTION hybrid_runner.next_ticks_of(name text, most integer) TO hybrid_runner_producer;

GRANT ALL ON FUNCTION hybrid_runner.next_ticks_of(name text, most integer) TO hybrid_runner_worker;

GRANT ALL ON FUNCTION hybrid_runner.next_ticks_of(name text, most integer) TO hybrid_runner_reader;

REVOKE ALL ON FUNCTION hybrid_runner.notify_if_room(channel text, message text) FROM PUBLIC;

GRANT ALL ON FUNCTION hybrid_runner.notify_if_room(channel text, message text) TO hybrid_runner_worker;

REVOKE ALL ON FUNCTION hybrid_runner.open_bell(queue text) FROM PUBLIC;

GRANT ALL ON FUNCTION hybrid_runner.open_bell(queue text) TO hybrid_runner_worker;

REVOKE ALL ON FUNCTION hybrid_runner.open_queue(name text, ring_within interval) FROM PUBLIC;

GRANT ALL ON FUNCTION hybrid_runner.open_queue(name text, ring_within interval) TO hybrid_runner_worker;

REVOKE ALL ON FUNCTION hybrid_runner.outranks_owner(source integer) FROM PUBLIC;

GRANT ALL ON FUNCTION hybrid_runner.outranks_owner(source integer) TO hybrid_runner_worker;

REVOKE ALL ON FUNCTION hybrid_runner.own_schedule(name text) FROM PUBLIC;

REVOKE ALL ON FUNCTION hybrid_runner.pass_keys(keys text[]) FROM PUBLIC;

GRANT ALL ON FUNCTION hybrid_runner.pass_keys(keys text[]) TO hybrid_runner_worker;

REVOKE ALL ON FUNCTION hybrid_runner.pause(queue text) FROM PUBLIC;

GRANT ALL ON FUNCTION hybrid_runner.pause(queue text) TO hybrid_runner_worker;

REVOKE ALL ON FUNCTION hybrid_runner.pause_schedule(name text) FROM PUBLIC;

GRANT ALL ON FUNCTION hybrid_runner.pause_schedule(name text) TO hybrid_runner_producer;

GRANT ALL ON FUNCTION hybrid_runner.pause_schedule(name text) TO hybrid_runner_worker;

REVOKE ALL ON FUNCTION hybrid_runner.prune(most integer) FROM PUBLIC;

GRANT ALL ON FUNCTION hybrid_runner.prune(most integer) TO hybrid_runner_worker;

REVOKE ALL ON FUNCTION hybrid_runner.publish(queue text, kind text, id bigint) FROM PUBLIC;

REVOKE ALL ON FUNCTION hybrid_runner.queue_depths(most integer, with_scheduled boolean, one_queue text, of_known_kinds boolean) FROM PUBLIC;

GRANT ALL ON FUNCTION hybrid_runner.queue_depths(most integer, with_scheduled boolean, one_queue text, of_known_kinds boolean) TO hybrid_runner_worker;

GRANT ALL ON FUNCTION hybrid_runner.queue_depths(most integer, with_scheduled boolean, one_queue text, of_known_kinds boolean) TO hybrid_runner_reader;

REVOKE ALL ON FUNCTION hybrid_runner.queue_of(kind text) FROM PUBLIC;

GRANT ALL ON FUNCTION hybrid_runner.queue_of(kind text) TO hybrid_runner_producer;

GRANT ALL ON FUNCTION hybrid_runner.queue_of(kind text) TO hybrid_runner_worker;

REVOKE ALL ON FUNCTION hybrid_runner.read_cron(cron text, OUT minutes integer[], OUT hours integer[], OUT days integer[], OUT months integer[], OUT weekdays integer[], OUT either_will_do boolean, OUT is_real_time boolean) FROM PUBLIC;

REVOKE ALL ON FUNCTION hybrid_runner.read_cron_field(field text, given text, lowest integer, highest integer, names text[]) FROM PUBLIC;

REVOKE ALL ON FUNCTION hybrid_runner.readers_left_ms() FROM PUBLIC;

GRANT ALL ON FUNCTION hybrid_runner.readers_left_ms() TO hybrid_runner_worker;

REVOKE ALL ON FUNCTION hybrid_runner.recent_ticks(its hybrid_runner.schedules, since timestamp with time zone, until timestamp with time zone, most integer) FROM PUBLIC;

REVOKE ALL ON FUNCTION hybrid_runner.renew_ticks() FROM PUBLIC;

REVOKE ALL ON FUNCTION hybrid_runner.resume(queue text) FROM PUBLIC;

GRANT ALL ON FUNCTION hybrid_runner.resume(queue text) TO hybrid_runner_worker;

REVOKE ALL ON FUNCTION hybrid_runner.resume_schedule(name text) FROM PUBLIC;

GRANT ALL ON FUNCTION hybrid_runner.resume_schedule(name text) TO hybrid_runner_producer;

GRANT ALL ON FUNCTION hybrid_runner.resume_schedule(name text) TO hybrid_runner_worker;

REVOKE ALL ON FUNCTION hybrid_runner.retry(id bigint) FROM PUBLIC;

GRANT ALL ON FUNCTION hybrid_runner.retry(id bigint) TO hybrid_runner_worker;

REVOKE ALL ON FUNCTION hybrid_runner.rewrite_archive(half text, partitions text[], opens timestamp with time zone, closes timestamp with time zone) FROM PUBLIC;

REVOKE ALL ON FUNCTION hybrid_runner.ring(queue text, due timestamp with time zone, commits boolean) FROM PUBLIC;

GRANT ALL ON FUNCTION hybrid_runner.ring(queue text, due timestamp with time zone, commits boolean) TO hybrid_runner_worker;

REVOKE ALL ON FUNCTION hybrid_runner.ring_for_inserted_jobs() FROM PUBLIC;

REVOKE ALL ON FUNCTION hybrid_runner.ring_for_row_changes() FROM PUBLIC;

REVOKE ALL ON FUNCTION hybrid_runner.ring_for_schedules() FROM PUBLIC;

REVOKE ALL ON FUNCTION hybrid_runner.ring_for_signals() FROM PUBLIC;

REVOKE ALL ON FUNCTION hybrid_runner.row_verdict(state text, shows text, is_wanted boolean, was_queued boolean, is_untouched boolean) FROM PUBLIC;

GRANT ALL ON FUNCTION hybrid_runner.row_verdict(state text, shows text, is_wanted boolean, was_queued boolean, is_untouched boolean) TO hybrid_runner_worker;

REVOKE ALL ON FUNCTION hybrid_runner.rows_of_source(source integer, what text, keys text[], most integer) FROM PUBLIC;

GRANT ALL ON FUNCTION hybrid_runner.rows_of_source(source integer, what text, keys text[], most integer) TO hybrid_runner_worker;

REVOKE ALL ON FUNCTION hybrid_runner.run_now(name text) FROM PUBLIC;

GRANT ALL ON FUNCTION hybrid_runner.run_now(name text) TO hybrid_runner_producer;

GRANT ALL ON FUNCTION hybrid_runner.run_now(name text) TO hybrid_runner_worker;

REVOKE ALL ON FUNCTION hybrid_runner.scale(queue text, usual_slots integer) FROM PUBLIC;

GRANT ALL ON FUNCTION hybrid_runner.scale(queue text, usual_slots integer) TO hybrid_runner_worker;

GRANT ALL ON FUNCTION hybrid_runner.scale(queue text, usual_slots integer) TO hybrid_runner_reader;

REVOKE ALL ON FUNCTION hybrid_runner.schedule(name text, kind text, payload jsonb, cron text, every interval, at timestamp with time zone, timezone text, queue text, priority integer, max_attempts integer, timeout interval, overlap text, missed text, catch_up interval, jitter interval, starts_at timestamp with time zone, ends_at timestamp with time zone) FROM PUBLIC;

GRANT ALL ON FUNCTION hybrid_runner.schedule(name text, kind text, payload jsonb, cron text, every interval, at timestamp with time zone, timezone text, queue text, priority integer, max_attempts integer, timeout interval, overlap text, missed text, catch_up interval, jitter interval, starts_at timestamp with time zone, ends_at timestamp with time zone) TO hybrid_runner_producer;

GRANT ALL ON FUNCTION hybrid_runner.schedule(name text, kind text, payload jsonb, cron text, every interval, at timestamp with time zone, timezone text, queue text, priority integer, max_attempts integer, timeout interval, overlap text, missed text, catch_up interval, jitter interval, starts_at timestamp with time zone, ends_at timestamp with time zone) TO hybrid_runner_worker;

REVOKE ALL ON FUNCTION hybrid_runner.shown(given text) FROM PUBLIC;

REVOKE ALL ON FUNCTION hybrid_runner.signal(key text, payload jsonb, once boolean) FROM PUBLIC;

GRANT ALL ON FUNCTION hybrid_runner.signal(key text, payload jsonb, once boolean) TO hybrid_runner_worker;

REVOKE ALL ON FUNCTION hybrid_runner.signals_channel() FROM PUBLIC;

GRANT ALL ON FUNCTION hybrid_runner.signals_channel() TO hybrid_runner_worker;

REVOKE ALL ON FUNCTION hybrid_runner.similar_kind(kind text) FROM PUBLIC;

GRANT ALL ON FUNCTION hybrid_runner.similar_kind(kind text) TO hybrid_runner_producer;

GRANT ALL ON FUNCTION hybrid_runner.similar_kind(kind text) TO hybrid_runner_worker;

REVOKE ALL ON FUNCTION hybrid_runner.store_follow_ups(follow_ups jsonb[]) FROM PUBLIC;

GRANT ALL ON FUNCTION hybrid_runner.store_follow_ups(follow_ups jsonb[]) TO hybrid_runner_worker;

REVOKE ALL ON FUNCTION hybrid_runner.store_schedule(name text, kind text, payload jsonb, cron text, every interval, at timestamp with time zone, timezone text, queue text, priority integer, max_attempts integer, timeout interval, overlap text, missed text, catch_up interval, jitter interval, starts_at timestamp with time zone, ends_at timestamp with time zone, declared boolean) FROM PUBLIC;

REVOKE ALL ON FUNCTION hybrid_runner.store_ticks(its hybrid_runner.schedules, ticks timestamp with time zone[]) FROM PUBLIC;

REVOKE ALL ON FUNCTION hybrid_runner.take_ended(ids bigint[], claims bigint[], states text[], results text[], errors text[], cancelled_at timestamp with time zone) FROM PUBLIC;

GRANT ALL ON FUNCTION hybrid_runner.take_ended(ids bigint[], claims bigint[], states text[], results text[], errors text[], cancelled_at timestamp with time zone) TO hybrid_runner_worker;

REVOKE ALL ON FUNCTION hybrid_runner.take_key(key text, unique_for interval) FROM PUBLIC;

REVOKE ALL ON FUNCTION hybrid_runner.tick_after(its hybrid_runner.schedules) FROM PUBLIC;

REVOKE ALL ON FUNCTION hybrid_runner.tick_clock() FROM PUBLIC;

REVOKE ALL ON FUNCTION hybrid_runner.unknown_kinds(due_for interval, most integer) FROM PUBLIC;

GRANT ALL ON FUNCTION hybrid_runner.unknown_kinds(due_for interval, most integer) TO hybrid_runner_worker;

GRANT ALL ON FUNCTION hybrid_runner.unknown_kinds(due_for interval, most integer) TO hybrid_runner_reader;

REVOKE ALL ON FUNCTION hybrid_runner.unschedule(name text) FROM PUBLIC;

GRANT ALL ON FUNCTION hybrid_runner.unschedule(name text) TO hybrid_runner_producer;

GRANT ALL ON FUNCTION hybrid_runner.unschedule(name text) TO hybrid_runner_worker;

REVOKE ALL ON FUNCTION hybrid_runner.wake_waiting(ids bigint[]) FROM PUBLIC;

GRANT ALL ON FUNCTION hybrid_runner.wake_waiting(ids bigint[]) TO hybrid_runner_worker;

REVOKE ALL ON FUNCTION hybrid_runner.want_again(source integer, row_key text) FROM PUBLIC;

GRANT ALL ON FUNCTION hybrid_runner.want_again(source integer, row_key text) TO hybrid_runner_worker;

REVOKE ALL ON FUNCTION hybrid_runner.want_rows(source integer, most integer, first_block bigint, blocks bigint) FROM PUBLIC;

GRANT ALL ON FUNCTION hybrid_runner.want_rows(source integer, most integer, first_block bigint, blocks bigint) TO hybrid_runner_worker;

REVOKE ALL ON FUNCTION hybrid_runner.write_late_rows(source integer, keys text[]) FROM PUBLIC;

GRANT ALL ON FUNCTION hybrid_runner.write_late_rows(source integer, keys text[]) TO hybrid_runner_worker;

REVOKE ALL ON FUNCTION hybrid_runner.write_rows(source integer, job_ids bigint[], keys text[], states text[], were_queued boolean[], retries integer[], workers text[], started timestamp with time zone[], finished timestamp with time zone[], results text[], errors text[], is_checked boolean, put_off boolean) FROM PUBLIC;

GRANT ALL ON FUNCTION hybrid_runner.write_rows(source integer, job_ids bigint[], keys text[], states text[], were_queued boolean[], retries integer[], workers text[], started timestamp with time zone[], finished timestamp with time zone[], results text[], errors text[], is_checked boolean, put_off boolean) TO hybrid_runner_worker;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE hybrid_runner.jobs TO hybrid_runner_worker;

GRANT SELECT ON TABLE hybrid_runner.jobs TO hybrid_runner_reader;

GRANT SELECT(id) ON TABLE hybrid_runner.jobs TO hybrid_runner_producer;

GRANT INSERT(queue) ON TABLE hybrid_runner.jobs TO hybrid_runner_producer;

GRANT INSERT(kind) ON TABLE hybrid_runner.jobs TO hybrid_runner_producer;

GRANT INSERT(priority) ON TABLE hybrid_runner.jobs TO hybrid_runner_producer;

GRANT INSERT(payload) ON TABLE hybrid_runner.jobs TO hybrid_runner_producer;

GRANT INSERT(data) ON TABLE hybrid_runner.jobs TO hybrid_runner_producer;

GRANT INSERT(key) ON TABLE hybrid_runner.jobs TO hybrid_runner_producer;

GRANT INSERT(run_at) ON TABLE hybrid_runner.jobs TO hybrid_runner_producer;

GRANT INSERT(max_attempts) ON TABLE hybrid_runner.jobs TO hybrid_runner_producer;

GRANT INSERT(timeout) ON TABLE hybrid_runner.jobs TO hybrid_runner_producer;

GRANT INSERT(finish_by) ON TABLE hybrid_runner.jobs TO hybrid_runner_producer;

GRANT INSERT(start_by) ON TABLE hybrid_runner.jobs TO hybrid_runner_producer;

GRANT INSERT(max_snoozes) ON TABLE hybrid_runner.jobs TO hybrid_runner_producer;

GRANT INSERT(max_duration) ON TABLE hybrid_runner.jobs TO hybrid_runner_producer;

GRANT INSERT(finish_within) ON TABLE hybrid_runner.jobs TO hybrid_runner_producer;

GRANT INSERT(traceparent) ON TABLE hybrid_runner.jobs TO hybrid_runner_producer;

GRANT SELECT ON TABLE hybrid_runner.all_jobs TO hybrid_runner_worker;

GRANT SELECT ON TABLE hybrid_runner.all_jobs TO hybrid_runner_reader;

GRANT SELECT ON TABLE hybrid_runner.archive_completed TO hybrid_runner_reader;

GRANT SELECT ON TABLE hybrid_runner.archive_completed_default TO hybrid_runner_reader;

GRANT SELECT ON TABLE hybrid_runner.archive_failed TO hybrid_runner_reader;

GRANT SELECT ON TABLE hybrid_runner.archive_failed_default TO hybrid_runner_reader;

GRANT SELECT ON TABLE hybrid_runner.retention TO hybrid_runner_worker;

GRANT SELECT ON TABLE hybrid_runner.retention TO hybrid_runner_reader;

GRANT SELECT ON TABLE hybrid_runner.archive_halves TO hybrid_runner_reader;

GRANT SELECT ON TABLE hybrid_runner.archive_partitions TO hybrid_runner_reader;

GRANT SELECT ON TABLE hybrid_runner.archive_scans TO hybrid_runner_reader;

GRANT SELECT ON TABLE hybrid_runner.callback_secret TO hybrid_runner_worker;

GRANT SELECT ON SEQUENCE hybrid_runner.changes_channel_number TO hybrid_runner_worker;

GRANT SELECT,USAGE ON SEQUENCE hybrid_runner.claims TO hybrid_runner_worker;

GRANT SELECT,UPDATE ON TABLE hybrid_runner.duties TO hybrid_runner_worker;

GRANT SELECT ON TABLE hybrid_runner.duties TO hybrid_runner_reader;

GRANT INSERT(name) ON TABLE hybrid_runner.duties TO hybrid_runner_worker;

GRANT INSERT(every) ON TABLE hybrid_runner.duties TO hybrid_runner_worker;

GRANT SELECT ON TABLE hybrid_runner.id_history TO hybrid_runner_reader;

GRANT SELECT,USAGE ON SEQUENCE hybrid_runner.jobs_id_seq TO hybrid_runner_worker;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE hybrid_runner.kinds TO hybrid_runner_worker;

GRANT SELECT ON TABLE hybrid_runner.kinds TO hybrid_runner_reader;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE hybrid_runner.late_rows TO hybrid_runner_worker;

GRANT SELECT ON TABLE hybrid_runner.late_rows TO hybrid_runner_reader;

GRANT SELECT ON TABLE hybrid_runner.locks TO hybrid_runner_reader;

GRANT SELECT ON TABLE hybrid_runner.migrations TO hybrid_runner_worker;

GRANT SELECT ON TABLE hybrid_runner.migrations TO hybrid_runner_reader;

GRANT SELECT ON TABLE hybrid_runner.queues TO hybrid_runner_worker;

GRANT SELECT ON TABLE hybrid_runner.queues TO hybrid_runner_reader;

GRANT SELECT ON SEQUENCE hybrid_runner.queues_number_seq TO hybrid_runner_worker;

GRANT SELECT,DELETE ON TABLE hybrid_runner.row_changes TO hybrid_runner_worker;

GRANT SELECT ON TABLE hybrid_runner.row_changes TO hybrid_runner_reader;

GRANT SELECT ON SEQUENCE hybrid_runner.row_changes_id_seq TO hybrid_runner_worker;

GRANT SELECT,DELETE ON TABLE hybrid_runner.signals TO hybrid_runner_worker;

GRANT SELECT ON TABLE hybrid_runner.signals TO hybrid_runner_reader;

GRANT INSERT(key) ON TABLE hybrid_runner.signals TO hybrid_runner_worker;

GRANT INSERT(payload) ON TABLE hybrid_runner.signals TO hybrid_runner_worker;

GRANT UPDATE(newest_job) ON TABLE hybrid_runner.signals TO hybrid_runner_worker;

GRANT SELECT ON SEQUENCE hybrid_runner.signals_id_seq TO hybrid_runner_worker;

GRANT SELECT ON TABLE hybrid_runner.sleepers TO hybrid_runner_reader;

GRANT SELECT ON TABLE hybrid_runner.sources TO hybrid_runner_worker;

GRANT SELECT ON TABLE hybrid_runner.sources TO hybrid_runner_reader;

GRANT SELECT,USAGE ON SEQUENCE hybrid_runner.sources_id_seq TO hybrid_runner_worker;

GRANT SELECT,UPDATE ON SEQUENCE hybrid_runner.stream_readers_until TO hybrid_runner_worker;

GRANT SELECT,DELETE,UPDATE ON TABLE hybrid_runner.taken_keys TO hybrid_runner_worker;

GRANT SELECT ON TABLE hybrid_runner.taken_keys TO hybrid_runner_reader;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE hybrid_runner.unreported_ends TO hybrid_runner_worker;

GRANT SELECT ON TABLE hybrid_runner.unreported_ends TO hybrid_runner_reader;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE hybrid_runner.waits TO hybrid_runner_worker;

GRANT SELECT ON TABLE hybrid_runner.waits TO hybrid_runner_reader;

GRANT SELECT ON SEQUENCE hybrid_runner.waits_id_seq TO hybrid_runner_worker;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE hybrid_runner.workers TO hybrid_runner_worker;

GRANT SELECT ON TABLE hybrid_runner.workers TO hybrid_runner_reader;

GRANT SELECT ON TABLE hybrid_runner.xid_history TO hybrid_runner_reader;

GRANT SELECT ON TABLE hybrid_runner.zone_rules TO hybrid_runner_reader;

ALTER DEFAULT PRIVILEGES IN SCHEMA hybrid_runner GRANT SELECT ON SEQUENCES TO hybrid_runner_worker;

ALTER DEFAULT PRIVILEGES IN SCHEMA hybrid_runner GRANT SELECT ON TABLES TO hybrid_runner_reader;
