-- why: finished jobs are forgotten by state and kind; for that the archive is divided by state first, then by hours or days
-- locks: SHARE on each past day of archive while it is copied, then ACCESS EXCLUSIVE on archive while today's rows are: seconds per
-- million. Jobs that end meanwhile wait in their workers; none is refused.

CREATE TABLE hybrid_runner.retention (
    state hybrid_runner.job_state NOT NULL,
    -- '' is all kinds that have no row of their own
    kind text NOT NULL DEFAULT '',
    keep interval NOT NULL,
    PRIMARY KEY (state, kind),
    CONSTRAINT retention_states_are_final CHECK (state IN ('completed', 'failed', 'cancelled')),
    CONSTRAINT retention_keep_is_at_most_ten_years CHECK (keep > '0' AND keep <= '3653 days')
);
INSERT INTO hybrid_runner.retention (state, keep) VALUES ('completed', '1 hour'), ('failed', '24 hours'), ('cancelled', '24 hours');

-- When a partition was last searched for rows to forget, and by which rules: a large one that is kept is not searched every minute.
CREATE TABLE hybrid_runner.archive_looks (
    partition text PRIMARY KEY,
    looked_at timestamptz NOT NULL DEFAULT '-infinity',
    rules text NOT NULL DEFAULT '',
    not_before timestamptz NOT NULL DEFAULT '-infinity'
);

-- Which transaction was the next one when: what is older than a number that is ten minutes old has held back vacuum for as long.
CREATE TABLE hybrid_runner.horizons (
    looked_at timestamptz PRIMARY KEY DEFAULT clock_timestamp(),
    next_transaction bigint NOT NULL
);

INSERT INTO hybrid_runner.chores (name, pause) VALUES ('prune', '10 minutes'), ('growth', '10 minutes');

CREATE FUNCTION hybrid_runner.keep(state text, keep interval, kind text DEFAULT '') RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_column
BEGIN
    IF keep.state IS NULL OR keep.state NOT IN ('completed', 'failed', 'cancelled') THEN
        RAISE EXCEPTION 'state must be completed, failed or cancelled, not %', coalesce(keep.state, 'NULL')
            USING ERRCODE = 'invalid_parameter_value';
    ELSIF keep.kind IS NULL OR length(keep.kind) > 128 THEN
        RAISE EXCEPTION 'kind must be 0 to 128 characters' USING ERRCODE = 'invalid_parameter_value';
    ELSIF keep.keep <= '0' OR keep.keep > '3653 days' THEN
        RAISE EXCEPTION 'keep must be more than zero and at most ten years, not %', keep.keep USING ERRCODE = 'invalid_parameter_value';
    ELSIF keep.keep IS NOT NULL THEN
        INSERT INTO hybrid_runner.retention AS r (state, kind, keep)
        VALUES (keep.state::hybrid_runner.job_state, keep.kind, keep.keep)
        ON CONFLICT (state, kind) DO UPDATE SET keep = excluded.keep WHERE r.keep <> excluded.keep;
    ELSIF keep.kind = '' THEN
        RAISE EXCEPTION 'keep is missing: only the exception of a kind can be removed' USING ERRCODE = 'invalid_parameter_value';
    ELSE
        DELETE FROM hybrid_runner.retention AS r WHERE r.state = keep.state::hybrid_runner.job_state AND r.kind = keep.kind;
    END IF;
END
$$;

-- The past days are copied while jobs still end: nothing is inserted there any more, and SHARE keeps retry() out.
CREATE TABLE hybrid_runner.archive_divided (
    LIKE hybrid_runner.archive INCLUDING DEFAULTS INCLUDING CONSTRAINTS,
    CONSTRAINT archive_divided_pkey PRIMARY KEY (id, finished_at, state)
) PARTITION BY LIST (state);
CREATE TABLE hybrid_runner.archive_completed PARTITION OF hybrid_runner.archive_divided FOR VALUES IN ('completed')
    PARTITION BY RANGE (finished_at);
-- and the cancelled ones: both are few, and each partition costs whoever looks for an id
CREATE TABLE hybrid_runner.archive_failed PARTITION OF hybrid_runner.archive_divided FOR VALUES IN ('failed', 'cancelled')
    PARTITION BY RANGE (finished_at);
-- A safety only: partitions are made ahead, so nothing should land here.
CREATE TABLE hybrid_runner.archive_completed_default PARTITION OF hybrid_runner.archive_completed DEFAULT;
CREATE TABLE hybrid_runner.archive_failed_default PARTITION OF hybrid_runner.archive_failed DEFAULT;

DO $$
DECLARE
    day text;
BEGIN
    SET LOCAL timezone = 'UTC';
    IF EXISTS (SELECT FROM hybrid_runner.archive WHERE finished_at < date_trunc('hour', now())) THEN
        EXECUTE format('CREATE TABLE hybrid_runner.archive_completed_past PARTITION OF hybrid_runner.archive_completed '
            'FOR VALUES FROM (MINVALUE) TO (%L)', date_trunc('hour', now()));
        EXECUTE format('CREATE TABLE hybrid_runner.archive_failed_past PARTITION OF hybrid_runner.archive_failed '
            'FOR VALUES FROM (MINVALUE) TO (%L)', date_trunc('hour', now()));
    END IF;
    FOR day IN
        SELECT c.relname FROM pg_inherits AS i JOIN pg_class AS c ON c.oid = i.inhrelid
        WHERE i.inhparent = 'hybrid_runner.archive'::regclass AND c.relname ~ '^archive_[0-9]{8}$'
            AND c.relname < 'archive_' || to_char(now() - interval '1 hour', 'YYYYMMDD')
        ORDER BY 1
    LOOP
        EXECUTE format('LOCK TABLE ONLY hybrid_runner.%I IN SHARE MODE', day);
        EXECUTE format('INSERT INTO hybrid_runner.archive_divided SELECT * FROM hybrid_runner.%I', day);
    END LOOP;
END
$$;

CREATE VIEW hybrid_runner.archive_partitions AS
SELECT
    shelf.relname::text AS shelf, part.relname::text AS partition, bound.text = 'DEFAULT' AS is_default,
    coalesce(substring(bound.text FROM 'FROM \(''([^'']+)''\)')::timestamptz, '-infinity') AS lower,
    substring(bound.text FROM 'TO \(''([^'']+)''\)')::timestamptz AS upper
FROM pg_inherits AS i
JOIN pg_class AS shelf ON shelf.oid = i.inhparent
JOIN pg_class AS part ON part.oid = i.inhrelid AND part.relnamespace = shelf.relnamespace
CROSS JOIN LATERAL pg_get_expr(part.relpartbound, part.oid) AS bound (text)
WHERE shelf.relname IN ('archive_completed', 'archive_failed')
    AND shelf.relnamespace = (SELECT n.oid FROM pg_namespace AS n WHERE n.nspname = 'hybrid_runner');

-- What each half of the archive is kept by: the longest time, NULL for ever, and all rules in one word.
CREATE VIEW hybrid_runner.archive_shelves AS
SELECT
    s.shelf,
    CASE WHEN count(*) FILTER (WHERE r.kind = '') = cardinality(s.states) THEN max(r.keep) END AS longest,
    md5(string_agg(format('%s %s %s', r.state, r.kind, extract(epoch FROM r.keep)), ' ' ORDER BY r.state, r.kind)) AS rules,
    min(r.keep) FILTER (WHERE r.kind = '') AS shortest
FROM (VALUES
    ('archive_completed', ARRAY['completed']::hybrid_runner.job_state[]),
    ('archive_failed', ARRAY['failed', 'cancelled']::hybrid_runner.job_state[])
) AS s (shelf, states)
LEFT JOIN hybrid_runner.retention AS r ON r.state = ANY (s.states)
GROUP BY s.shelf, s.states;

CREATE FUNCTION hybrid_runner.add_archive_partition(shelf text, opens timestamptz, closes timestamptz) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    partition text := format('%s_%s_%s', shelf, to_char(opens, 'YYYYMMDDHH24'), to_char(closes, 'YYYYMMDDHH24'));
BEGIN
    -- ATTACH, not PARTITION OF: it lets others read and write the archive meanwhile.
    EXECUTE format('LOCK TABLE hybrid_runner.%I IN ACCESS EXCLUSIVE MODE', shelf || '_default');
    EXECUTE format('CREATE TABLE hybrid_runner.%I (LIKE hybrid_runner.archive INCLUDING DEFAULTS INCLUDING CONSTRAINTS)', partition);
    EXECUTE format(
        'WITH strays AS (DELETE FROM hybrid_runner.%1$I WHERE finished_at >= %2$L AND finished_at < %3$L RETURNING *) '
        'INSERT INTO hybrid_runner.%4$I SELECT * FROM strays', shelf || '_default', opens, closes, partition);
    EXECUTE format(
        'ALTER TABLE hybrid_runner.%I ATTACH PARTITION hybrid_runner.%I FOR VALUES FROM (%L) TO (%L)',
        shelf, partition, opens, closes);
END
$$;

CREATE OR REPLACE FUNCTION hybrid_runner.make_archive_partitions(days_ahead integer DEFAULT 7) RETURNS integer
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp SET timezone = 'UTC' SET datestyle = 'ISO' SET lock_timeout = '2s'
AS $$
DECLARE
    half record;
    opens timestamptz;
    closes timestamptz;
    made integer := 0;
BEGIN
    PERFORM pg_advisory_xact_lock(hashtextextended('hybrid_runner.make_archive_partitions', 0));
    FOR half IN
        -- As fine as what is forgotten first needs, and no finer: each partition costs whoever looks for an id.
        SELECT s.shelf, w.unit, now() + least(make_interval(days => days_ahead), w.ahead) AS until
        FROM hybrid_runner.archive_shelves AS s
        JOIN (VALUES ('hour', interval '6 hours'), ('day', '3 days'), ('month', '1 month')) AS w (unit, ahead)
            ON w.unit = CASE WHEN s.shortest < '12 hours' THEN 'hour' WHEN s.shortest < '60 days' THEN 'day' ELSE 'month' END
    LOOP
        SELECT coalesce(max(p.upper), date_trunc(half.unit, now())) INTO opens
        FROM hybrid_runner.archive_partitions AS p
        WHERE p.shelf = half.shelf AND p.upper > date_trunc(half.unit, now());
        WHILE opens <= half.until LOOP
            closes := date_trunc(half.unit, opens) + ('1 ' || half.unit)::interval;
            PERFORM hybrid_runner.add_archive_partition(half.shelf, opens, closes);
            opens := closes;
            made := made + 1;
        END LOOP;
    END LOOP;
    RETURN made;
END
$$;

-- From here on nothing ends until this is committed.
LOCK TABLE hybrid_runner.archive IN ACCESS EXCLUSIVE MODE;
ALTER TABLE hybrid_runner.archive RENAME TO archive_undivided;
ALTER TABLE hybrid_runner.archive_divided RENAME TO archive;
SELECT hybrid_runner.make_archive_partitions();

DO $$
DECLARE
    part text;
    granted record;
BEGIN
    SET LOCAL timezone = 'UTC';
    FOR part IN
        SELECT c.relname FROM pg_inherits AS i JOIN pg_class AS c ON c.oid = i.inhrelid
        WHERE i.inhparent = 'hybrid_runner.archive_undivided'::regclass AND NOT (
            c.relname ~ '^archive_[0-9]{8}$'
            AND c.relname < 'archive_' || to_char(now() - interval '1 hour', 'YYYYMMDD'))
    LOOP
        EXECUTE format('INSERT INTO hybrid_runner.archive SELECT * FROM hybrid_runner.%I', part);
    END LOOP;
    -- Who was allowed to use it is so from this moment on.
    FOR granted IN
        SELECT a.privilege_type AS privilege, CASE WHEN a.grantee = 0 THEN 'PUBLIC' ELSE a.grantee::regrole::text END AS role
        FROM pg_class AS c CROSS JOIN LATERAL aclexplode(c.relacl) AS a
        WHERE c.oid = 'hybrid_runner.archive_undivided'::regclass
    LOOP
        EXECUTE format('GRANT %s ON hybrid_runner.archive TO %s', granted.privilege, granted.role);
    END LOOP;
END
$$;

CREATE OR REPLACE VIEW hybrid_runner.all_jobs AS
SELECT
    id, queue, kind, priority, payload, data, key, run_at, max_attempts, timeout, finish_by, traceparent, state, attempt,
    claim, worker_id, started_at, progress, errors, version, cancel_requested_at, created_at,
    NULL::timestamptz AS finished_at, NULL::jsonb AS result
FROM hybrid_runner.jobs
UNION ALL
SELECT
    id, queue, kind, priority, payload, data, key, run_at, max_attempts, timeout, finish_by, traceparent, state, attempt,
    claim, worker_id, started_at, progress, errors, version, cancel_requested_at, created_at,
    finished_at, result
FROM hybrid_runner.archive;

DROP TABLE hybrid_runner.archive_undivided;
ALTER TABLE hybrid_runner.archive RENAME CONSTRAINT archive_divided_pkey TO archive_pkey;

CREATE FUNCTION hybrid_runner.rewrite_archive(shelf text, partitions text[], opens timestamptz, closes timestamptz) RETURNS text
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    successor text := format(
        '%s_%s_%s', shelf, CASE WHEN isfinite(opens) THEN to_char(opens, 'YYYYMMDDHH24') ELSE 'past' END, to_char(closes, 'YYYYMMDDHH24'));
    part text;
    counted bigint;
    kept bigint := 0;
BEGIN
    -- Those who read go on; those who write wait here, where they hold nothing of it yet.
    FOREACH part IN ARRAY partitions LOOP
        EXECUTE format('LOCK TABLE ONLY hybrid_runner.%I IN EXCLUSIVE MODE', part);
    END LOOP;
    CREATE TABLE hybrid_runner.archive_successor (LIKE hybrid_runner.archive INCLUDING DEFAULTS INCLUDING CONSTRAINTS);
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
            CASE shelf WHEN 'archive_completed' THEN 'state = ''completed''' ELSE 'state IN (''failed'', ''cancelled'')' END,
            opens, closes);
    END IF;
    EXECUTE format('LOCK TABLE ONLY hybrid_runner.%I IN ACCESS EXCLUSIVE MODE', shelf);
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
        'INSERT INTO hybrid_runner.archive_successor SELECT * FROM strays', shelf || '_default', opens, closes);
    EXECUTE format('ALTER TABLE hybrid_runner.archive_successor RENAME TO %I', successor);
    EXECUTE format('ALTER INDEX hybrid_runner.archive_successor_pkey RENAME TO %I', successor || '_pkey');
    EXECUTE format(
        'ALTER TABLE hybrid_runner.%I ATTACH PARTITION hybrid_runner.%I FOR VALUES FROM (%s) TO (%L)',
        shelf, successor, CASE WHEN isfinite(opens) THEN quote_literal(opens) ELSE 'MINVALUE' END, closes);
    EXECUTE format('ALTER TABLE hybrid_runner.%I DROP CONSTRAINT fits', successor);
    RETURN successor;
END
$$;

CREATE FUNCTION hybrid_runner.prune(most integer DEFAULT 20) RETURNS TABLE (what text, partition text, bytes bigint)
LANGUAGE plpgsql SECURITY DEFINER
-- Who waits for a lock holds up all who come after: so briefly that nobody notices, and again a minute later.
SET search_path = pg_catalog, pg_temp SET timezone = 'UTC' SET datestyle = 'ISO' SET lock_timeout = '300ms'
AS $$
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
    IF NOT pg_try_advisory_xact_lock(hashtextextended('hybrid_runner.prune', 0)) THEN
        RETURN QUERY SELECT 'busy', '', bigint '0';
        RETURN;
    END IF;

    -- 1: partitions of which nothing is kept
    FOR due IN
        SELECT old.shelf, array_agg(old.partition ORDER BY old.upper) AS partitions, array_agg(old.bytes ORDER BY old.upper) AS bytes
        FROM (
            SELECT p.shelf, p.partition, p.upper, pg_total_relation_size('hybrid_runner.' || p.partition) AS bytes
            FROM hybrid_runner.archive_partitions AS p
            JOIN hybrid_runner.archive_shelves AS s ON s.shelf = p.shelf
            WHERE NOT p.is_default AND p.upper + s.longest <= now()
            ORDER BY p.upper
            LIMIT most
        ) AS old
        GROUP BY old.shelf
    LOOP
        BEGIN
            EXECUTE format('LOCK TABLE ONLY hybrid_runner.%I IN ACCESS EXCLUSIVE MODE', due.shelf);
            -- All settles wait now: for nobody else.
            FOREACH part IN ARRAY due.partitions LOOP
                EXECUTE format('LOCK TABLE ONLY hybrid_runner.%I IN ACCESS EXCLUSIVE MODE NOWAIT', part);
                EXECUTE format('DROP TABLE hybrid_runner.%I', part);
            END LOOP;
            has_dropped := true;
            RETURN QUERY SELECT 'dropped', gone.* FROM unnest(due.partitions, due.bytes) AS gone;
        EXCEPTION WHEN lock_not_available OR deadlock_detected THEN
            -- A transaction that archives and goes on for long holds the whole shelf, but nothing of the past.
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
    -- Its lock on the shelf lasts until the commit: copying has to wait for the next call.
    IF has_dropped THEN
        RETURN;
    END IF;

    -- 3: one partition of which some is kept, or several small old ones that can be one
    SELECT c.* INTO due FROM (
        SELECT
            p.shelf, ARRAY[p.partition] AS partitions, p.lower AS opens, p.upper AS closes, s.rules, 'rewritten' AS manner
        FROM hybrid_runner.archive_partitions AS p
        JOIN hybrid_runner.archive_shelves AS s ON s.shelf = p.shelf
        LEFT JOIN hybrid_runner.archive_looks AS l ON l.partition = p.partition
        WHERE NOT p.is_default AND (p.upper + s.longest > now()) IS NOT FALSE AND EXISTS (
            SELECT FROM hybrid_runner.retention AS r
            WHERE (r.state = 'completed') = (p.shelf = 'archive_completed') AND p.upper + r.keep <= now()
                AND (l.partition IS NULL OR l.rules <> s.rules OR p.upper + r.keep > l.looked_at)
        )
        UNION ALL
        SELECT p.shelf, array_agg(p.partition), min(p.lower), max(p.upper), s.rules, 'merged'
        FROM hybrid_runner.archive_partitions AS p
        JOIN hybrid_runner.archive_shelves AS s ON s.shelf = p.shelf
        CROSS JOIN (VALUES ('day', interval '1 day', interval '1 day'), ('month', '1 month', '30 days')) AS w (unit, width, rest)
        WHERE NOT p.is_default AND p.upper <= date_trunc(w.unit, p.lower) + w.width AND isfinite(p.lower)
            AND date_trunc(w.unit, p.lower) + w.width + w.rest <= now()
        GROUP BY p.shelf, s.rules, w.unit, date_trunc(w.unit, p.lower)
        HAVING count(*) > 1
    ) AS c
    WHERE NOT EXISTS (
        SELECT FROM hybrid_runner.archive_looks AS l WHERE l.partition = ANY (c.partitions) AND l.not_before > now()
    )
    ORDER BY c.manner DESC, c.closes
    LIMIT 1;
    IF NOT FOUND THEN
        DELETE FROM hybrid_runner.archive_looks AS l
        WHERE NOT EXISTS (SELECT FROM hybrid_runner.archive_partitions AS p WHERE p.partition = l.partition);
        RETURN;
    END IF;
    SELECT sum(pg_total_relation_size('hybrid_runner.' || p)) INTO bytes FROM unnest(due.partitions) AS p;
    IF due.manner = 'rewritten' THEN
        EXECUTE format(
            'SELECT FROM hybrid_runner.%I AS a LEFT JOIN hybrid_runner.retention AS own ON own.state = a.state AND own.kind = a.kind '
            'JOIN hybrid_runner.retention AS usual ON usual.state = a.state AND usual.kind = '''' '
            'WHERE a.finished_at + coalesce(own.keep, usual.keep) <= now() LIMIT 1', due.partitions[1]);
        GET DIAGNOSTICS found_some = ROW_COUNT;
    END IF;
    BEGIN
        IF found_some = 0 THEN
            successor := due.partitions[1];
            what := 'kept';
        ELSE
            successor := hybrid_runner.rewrite_archive(due.shelf, due.partitions, due.opens, due.closes);
            what := CASE WHEN successor IS NULL THEN 'dropped' ELSE due.manner END;
        END IF;
        partition := coalesce(successor, due.partitions[1]);
        IF successor IS NOT NULL THEN
            bytes := bytes - pg_total_relation_size('hybrid_runner.' || successor);
            INSERT INTO hybrid_runner.archive_looks AS l (partition, looked_at, rules) VALUES (successor, now(), due.rules)
            ON CONFLICT (partition) DO UPDATE SET looked_at = excluded.looked_at, rules = excluded.rules, not_before = '-infinity';
        END IF;
    EXCEPTION WHEN lock_not_available OR deadlock_detected THEN
        -- The copy was for nothing: not again at once.
        what := 'blocked';
        partition := due.partitions[1];
        INSERT INTO hybrid_runner.archive_looks AS l (partition, not_before) VALUES (partition, now() + interval '5 minutes')
        ON CONFLICT (partition) DO UPDATE SET not_before = excluded.not_before;
    END;
    RETURN NEXT;
END
$$;

CREATE OR REPLACE FUNCTION hybrid_runner.retry(id bigint) RETURNS text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_column
DECLARE
    job hybrid_runner.jobs;
    done hybrid_runner.archive;
BEGIN
    SELECT j.* INTO job FROM hybrid_runner.jobs AS j WHERE j.id = retry.id FOR UPDATE;
    IF job.state = 'running' AND EXISTS (
        SELECT FROM hybrid_runner.workers AS w WHERE w.id = job.worker_id AND w.heartbeat_at + w.lease > clock_timestamp()
    ) THEN
        RETURN 'running';
    ELSIF job.state = 'running' THEN
        -- Its worker is dead. Should it live after all, its claim is void.
        UPDATE hybrid_runner.jobs AS j SET
            state = 'queued', run_at = clock_timestamp(), claim = NULL, worker_id = NULL, started_at = NULL,
            cancel_requested_at = NULL, version = j.version + 1
        WHERE j.id = retry.id;
        PERFORM hybrid_runner.ring(job.queue, clock_timestamp());
        RETURN 'queued';
    ELSIF job.state = 'queued' THEN
        UPDATE hybrid_runner.jobs AS j SET run_at = least(j.run_at, clock_timestamp()), version = j.version + 1 WHERE j.id = retry.id;
        PERFORM hybrid_runner.ring(job.queue, clock_timestamp());
        RETURN 'queued';
    END IF;

    -- Here, where it holds nothing of the archive yet, it can wait for a partition that is being written anew.
    PERFORM pg_advisory_xact_lock_shared(hashtextextended('hybrid_runner.prune', 0));
    SELECT a.* INTO done FROM hybrid_runner.archive AS a WHERE a.id = retry.id FOR UPDATE;
    IF NOT FOUND THEN
        -- Somebody else may have retried it while this call waited.
        RETURN CASE WHEN EXISTS (SELECT FROM hybrid_runner.jobs AS j WHERE j.id = retry.id) THEN 'queued' ELSE 'unknown' END;
    END IF;
    -- A fresh set of attempts; the errors of the earlier ones are kept.
    INSERT INTO hybrid_runner.jobs
        (id, queue, kind, priority, payload, data, key, max_attempts, timeout, traceparent, errors, version, created_at)
    VALUES (done.id, done.queue, done.kind, done.priority, done.payload, done.data, done.key, done.max_attempts, done.timeout,
        done.traceparent, done.errors, done.version + 1, done.created_at)
    ON CONFLICT DO NOTHING;
    IF NOT FOUND THEN
        RETURN 'key_taken';
    END IF;
    DELETE FROM hybrid_runner.archive AS a WHERE a.id = retry.id AND a.finished_at = done.finished_at;
    RETURN 'queued';
END
$$;

CREATE FUNCTION hybrid_runner.find_growth(longer_than interval DEFAULT '10 minutes') RETURNS TABLE (culprit text, complaint text)
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp SET timezone = 'UTC' SET datestyle = 'ISO'
AS $$
DECLARE
    known bigint;
BEGIN
    SELECT max(h.next_transaction) INTO known FROM hybrid_runner.horizons AS h WHERE h.looked_at <= clock_timestamp() - longer_than;
    DELETE FROM hybrid_runner.horizons AS h WHERE h.looked_at < clock_timestamp() - greatest(interval '1 day', 2 * longer_than);
    INSERT INTO hybrid_runner.horizons (next_transaction) VALUES (pg_snapshot_xmax(pg_current_snapshot())::text::bigint);

    RETURN QUERY
    SELECT
        'session ' || s.pid, format(
            'session %s (%s, %s) has been in one transaction for %s and keeps vacuum from cleaning up: '
            'end it, or SELECT pg_terminate_backend(%s)',
            s.pid, coalesce(nullif(s.application_name, ''), 'no name'), s.state,
            date_trunc('second', clock_timestamp() - s.xact_start), s.pid)
    FROM pg_stat_activity AS s
    WHERE s.datname = current_database() AND s.backend_type = 'client backend' AND s.xact_start < clock_timestamp() - longer_than
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
            quote_ident(s.slot_name), CASE WHEN s.active THEN 'in use' ELSE 'nobody uses it' END, longer_than)
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
    SELECT 'setting ' || s.name, format('%s is off on this server: nothing cleans up hybrid_runner.jobs; switch it on', s.name)
    FROM pg_settings AS s
    WHERE s.name IN ('autovacuum', 'track_counts') AND s.setting = 'off'
    UNION ALL
    SELECT 'option autovacuum', 'autovacuum is off for hybrid_runner.jobs: ALTER TABLE hybrid_runner.jobs RESET (autovacuum_enabled)'
    FROM pg_class AS c
    CROSS JOIN LATERAL pg_options_to_table(c.reloptions) AS o
    WHERE c.oid = 'hybrid_runner.jobs'::regclass AND o.option_name = 'autovacuum_enabled' AND NOT o.option_value::boolean;

    RETURN QUERY
    SELECT
        'ahead ' || s.shelf, format(
            'hybrid_runner.%s has no partition from %s on: see why make_archive_partitions fails',
            s.shelf, coalesce(newest.upper::text, 'now'))
    FROM hybrid_runner.archive_shelves AS s
    LEFT JOIN LATERAL (
        SELECT p.lower, p.upper FROM hybrid_runner.archive_partitions AS p
        WHERE p.shelf = s.shelf AND NOT p.is_default ORDER BY p.upper DESC LIMIT 1
    ) AS newest ON true
    WHERE (newest.upper > now() + CASE WHEN newest.upper - newest.lower > '1 hour' THEN interval '1 day' ELSE '2 hours' END) IS NOT TRUE
    ORDER BY s.shelf;

    RETURN QUERY
    SELECT
        'strays ' || s.shelf, format(
            'hybrid_runner.%s has rows: when they ended there was no partition; see why make_archive_partitions fails', s.shelf)
    FROM (
        SELECT 'archive_completed_default' AS shelf WHERE EXISTS (SELECT FROM hybrid_runner.archive_completed_default)
        UNION ALL
        SELECT 'archive_failed_default' WHERE EXISTS (SELECT FROM hybrid_runner.archive_failed_default)
    ) AS s;
END
$$;
