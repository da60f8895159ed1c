-- schema: what all migrations make together, as pg_dump shows it. Written by `make schema`; never edited.

CREATE SCHEMA hybrid_monitors;

CREATE TYPE hybrid_monitors.service_columns AS (
	name text,
	url text,
	every interval,
	timeout interval,
	format text,
	mapping jsonb,
	expect jsonb,
	headers jsonb,
	follow integer,
	fail_after integer,
	recover_after integer,
	depends_on bigint,
	labels jsonb,
	active boolean,
	quiet_until timestamp with time zone
);

CREATE FUNCTION hybrid_monitors.add_partition(what text, opens timestamp with time zone, closes timestamp with time zone) RETURNS void
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $_$
DECLARE
    its_name text := format('%s_%s', what, to_char(opens, 'YYYYMMDD'));

    divided_by text := CASE what WHEN 'hours' THEN 'hour' ELSE 'at' END;

BEGIN
    -- From the whole to its parts, as an index or a trigger on the table takes them: one of the two
    -- would otherwise end by a deadlock.
    EXECUTE format('LOCK TABLE ONLY hybrid_monitors.%I IN SHARE UPDATE EXCLUSIVE MODE', what);

    -- ATTACH, not PARTITION OF: it lets others read and write the table meanwhile.
    EXECUTE format('LOCK TABLE hybrid_monitors.%I IN ACCESS EXCLUSIVE MODE', what || '_default');

    EXECUTE format(
        'CREATE TABLE hybrid_monitors.%I (LIKE hybrid_monitors.%I INCLUDING DEFAULTS INCLUDING CONSTRAINTS)',
        its_name, what);

    EXECUTE format(
        'WITH strays AS (DELETE FROM hybrid_monitors.%1$I WHERE %5$I >= %2$L AND %5$I < %3$L RETURNING *) '
        'INSERT INTO hybrid_monitors.%4$I SELECT * FROM strays', what || '_default', opens, closes,
        its_name, divided_by);

    IF what = 'latencies' THEN
        -- Nobody searches in these arrays, and to count what is in them is most of an ANALYZE.
        EXECUTE format(
            'ALTER TABLE hybrid_monitors.%I ALTER COLUMN dependency_ids SET STATISTICS 0, '
            'ALTER COLUMN milliseconds SET STATISTICS 0', its_name);

    END IF;

    EXECUTE format(
        'ALTER TABLE hybrid_monitors.%I ATTACH PARTITION hybrid_monitors.%I FOR VALUES FROM (%L) TO (%L)',
        what, its_name, opens, closes);

END
$_$;

CREATE FUNCTION hybrid_monitors.add_service(columns jsonb) RETURNS bigint
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
DECLARE
    added bigint;
    c hybrid_monitors.service_columns;
BEGIN
    c := hybrid_monitors.service_columns_of(add_service.columns);
    INSERT INTO hybrid_monitors.services AS s (
        name, url, every, timeout, format, mapping, expect, headers, follow, fail_after,
        recover_after, depends_on, labels, active, quiet_until
    ) VALUES (
        c.name, c.url, coalesce(c.every, interval '30 s'), coalesce(c.timeout, interval '10 s'),
        c.format, c.mapping, c.expect, c.headers, coalesce(c.follow, 0), coalesce(c.fail_after, 1),
        coalesce(c.recover_after, 1), c.depends_on, coalesce(c.labels, '{}'),
        coalesce(c.active, true), c.quiet_until
    ) RETURNING s.id INTO added;
    RETURN added;
END
$$;

CREATE FUNCTION hybrid_monitors.ask_poll(name text) RETURNS bigint
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET lock_timeout TO '1s'
    AS $$
#variable_conflict use_column
DECLARE
    wanted record;
    its_name text := quote_literal(left(ask_poll.name, 200));
BEGIN
    SELECT s.id, s.host, s.active INTO wanted
    FROM hybrid_monitors.services AS s WHERE s.name = ask_poll.name;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'there is no service called %', coalesce(its_name, 'NULL')
            USING ERRCODE = 'invalid_parameter_value';
    ELSIF NOT wanted.active THEN
        RAISE EXCEPTION 'service % is paused: resume it first', its_name
            USING ERRCODE = 'invalid_parameter_value';
    ELSIF EXISTS (
        SELECT FROM hybrid_monitors.hosts AS h
        JOIN hybrid_runner.jobs AS j ON j.id = h.round_job AND j.claim = h.round_claim
        WHERE h.host = wanted.host AND j.state = 'running' AND wanted.id = ANY (h.round_services)
    ) THEN
        RAISE EXCEPTION 'a poll of service % is on its way: wait for its answer', its_name
            USING ERRCODE = 'invalid_parameter_value';
    END IF;
    INSERT INTO hybrid_monitors.asked (service_id) VALUES (wanted.id)
    ON CONFLICT (service_id) DO NOTHING;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'a poll of service % is asked for already: wait for its answer', its_name
            USING ERRCODE = 'invalid_parameter_value';
    END IF;
    PERFORM hybrid_monitors.services_changed(ARRAY[wanted.host]);
    RETURN wanted.id;
EXCEPTION WHEN lock_not_available THEN
    RAISE EXCEPTION 'a poll of service % is asked for in a transaction that is still open: try '
        'again once it has ended', its_name
        USING ERRCODE = 'invalid_parameter_value';
END
$$;

CREATE FUNCTION hybrid_monitors.begin_probes(job_id bigint, claim bigint, service_ids bigint[], until timestamp with time zone) RETURNS bigint[]
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET lock_timeout TO '5s'
    AS $$
#variable_conflict use_column
DECLARE
    its_host text;
    begun bigint[];
BEGIN
    SELECT substr(j.key, 10) INTO its_host FROM hybrid_runner.jobs AS j
    WHERE j.id = begin_probes.job_id AND j.claim = begin_probes.claim AND j.state = 'running'
        AND j.key LIKE 'monitors:%'
    FOR SHARE;
    IF NOT FOUND THEN
        RETURN NULL;
    END IF;
    WITH probed AS (
        UPDATE hybrid_monitors.standings AS t
        SET breaker = 'half_open', opened_at = clock_timestamp(), due_at = begin_probes.until
        WHERE t.service_id = ANY (begin_probes.service_ids) AND t.host = its_host
            AND t.breaker <> 'closed'
        RETURNING t.service_id
    )
    SELECT coalesce(array_agg(p.service_id), '{}') INTO begun FROM probed AS p;
    RETURN begun;
END
$$;

CREATE FUNCTION hybrid_monitors.check_alias() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
DECLARE
    refusal text := coalesce(
        hybrid_monitors.refusal_of_name('alias', NEW.alias),
        hybrid_monitors.refusal_of_name('canonical_name', NEW.canonical_name));
BEGIN
    IF refusal IS NOT NULL THEN
        RAISE EXCEPTION 'aliases.%', refusal
            USING ERRCODE = 'check_violation', SCHEMA = 'hybrid_monitors', TABLE = 'aliases';
    END IF;
    RETURN NEW;
END
$$;

CREATE FUNCTION hybrid_monitors.check_service() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET enable_seqscan TO 'off'
    SET jit TO 'off'
    AS $$
DECLARE
    is_new CONSTANT boolean := TG_OP = 'INSERT';
    refusal text;
BEGIN
    IF NEW.format IS NULL THEN
        NEW.format := CASE WHEN NEW.mapping IS NULL THEN 'dependencies' ELSE 'mapping' END;
    END IF;
    IF is_new AND NEW.id NOT BETWEEN 1 AND 4611686018427387904 THEN
        refusal := format('id must be given by Postgres, not %s', NEW.id);
    ELSIF NOT is_new AND NEW.id <> OLD.id THEN
        refusal := format('id must stay what it is, which is %s: add another service instead', OLD.id);
    ELSIF is_new OR NEW.name IS DISTINCT FROM OLD.name THEN
        refusal := hybrid_monitors.refusal_of_name('name', NEW.name);
    END IF;
    IF refusal IS NULL AND (is_new OR NEW.url IS DISTINCT FROM OLD.url) THEN
        refusal := coalesce(
            CASE WHEN NEW.url IS NULL THEN 'url must begin with http:// or https:// and name a host' END,
            hybrid_monitors.refusal_of_url(NEW.url));
    END IF;
    -- As text: a month less 29 days and more is equal to 30 s, and far from it when added.
    IF refusal IS NULL AND (is_new OR NEW.every::text <> OLD.every::text OR NEW.every IS NULL) THEN
        refusal := hybrid_monitors.refusal_of_interval(
            'every', NEW.every, interval '5 s', interval '1 h', '5s and 1h');
    END IF;
    IF refusal IS NULL AND (is_new OR NEW.timeout::text <> OLD.timeout::text OR NEW.timeout IS NULL) THEN
        refusal := hybrid_monitors.refusal_of_interval(
            'timeout', NEW.timeout, interval '100 ms', interval '60 s', '0.1s and 60s');
    END IF;
    IF refusal IS NULL AND (
        is_new OR (NEW.format, NEW.mapping) IS DISTINCT FROM (OLD.format, OLD.mapping)
    ) THEN
        refusal := CASE
            WHEN NEW.format NOT IN ('dependencies', 'mapping', 'status') THEN format(
                'format must be dependencies, mapping or status, not %s', left(NEW.format, 100))
            WHEN NEW.format = 'mapping' AND NEW.mapping IS NULL THEN
                'mapping is missing: it explains what the format mapping is'
            WHEN NEW.format <> 'mapping' AND NEW.mapping IS NOT NULL THEN format(
                'mapping is not used with the format %s: set the format to mapping', NEW.format)
        END;
    END IF;
    IF refusal IS NULL THEN
        SELECT min(o.name || CASE WHEN jsonb_typeof(o.value) <> 'object' THEN ' must be an object'
            ELSE ' has more than 8192 bytes of JSON: make it shorter' END)
        INTO refusal
        FROM (VALUES
            ('mapping', NEW.mapping), ('expect', NEW.expect), ('headers', NEW.headers),
            ('labels', coalesce(NEW.labels, 'null'))
        ) AS o (name, value)
        WHERE jsonb_typeof(o.value) <> 'object' OR octet_length(o.value::text) > 8192;
    END IF;
    refusal := coalesce(refusal, CASE
        WHEN (NEW.follow BETWEEN 0 AND 5) IS NOT TRUE THEN
            format('follow must be 0 to 5, not %s', coalesce(NEW.follow::text, 'NULL'))
        WHEN (NEW.fail_after BETWEEN 1 AND 100) IS NOT TRUE THEN
            format('fail_after must be 1 to 100, not %s', coalesce(NEW.fail_after::text, 'NULL'))
        WHEN (NEW.recover_after BETWEEN 1 AND 100) IS NOT TRUE THEN
            format('recover_after must be 1 to 100, not %s', coalesce(NEW.recover_after::text, 'NULL'))
        WHEN NEW.active IS NULL THEN 'active must be true or false, not NULL'
        WHEN NOT (NEW.quiet_until >= '1970-01-01 UTC' AND NEW.quiet_until < '9999-01-01 UTC') THEN
            format('quiet_until must be between 1970 and 9999, not %s', NEW.quiet_until)
        WHEN NEW.created_at IS NULL OR NOT isfinite(NEW.created_at) THEN
            'created_at must be a time: leave it out'
    END);
    IF refusal IS NULL AND (is_new OR NEW.labels IS DISTINCT FROM OLD.labels) THEN
        SELECT min(hybrid_monitors.refusal_of_label('labels.' || left(l.key, 100), l.value) COLLATE "C")
        INTO refusal FROM jsonb_each(NEW.labels) AS l;
    END IF;
    IF refusal IS NULL AND NEW.depends_on IS NOT NULL
        AND (is_new OR NEW.depends_on IS DISTINCT FROM OLD.depends_on) THEN
        refusal := hybrid_monitors.refusal_of_parent(NEW.id, NEW.depends_on);
    END IF;
    IF refusal IS NOT NULL THEN
        RAISE EXCEPTION 'services.%', refusal
            USING ERRCODE = 'check_violation', SCHEMA = 'hybrid_monitors', TABLE = 'services';
    END IF;
    RETURN NEW;
END
$$;

CREATE FUNCTION hybrid_monitors.check_window() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
DECLARE
    most CONSTANT integer := 1000;
    refusal text;
BEGIN
    refusal := CASE
        WHEN num_nonnulls(NEW.service_id, NEW.label) <> 1 THEN
            'service_id or label must be given, not both: label {} is all services'
        WHEN NEW.label IS NOT NULL AND jsonb_typeof(NEW.label) <> 'object' THEN
            'label must be an object, such as {"team": "billing"}'
        WHEN octet_length(NEW.label::text) > 1024 THEN
            'label has more than 1024 bytes of JSON: make it shorter'
        WHEN (NEW.begins >= '1970-01-01 UTC' AND NEW.begins < '9999-01-01 UTC') IS NOT TRUE THEN
            'begins must be between 1970 and 9999, not ' || coalesce(NEW.begins::text, 'NULL')
        WHEN (NEW.ends > NEW.begins AND NEW.ends < '9999-01-01 UTC') IS NOT TRUE THEN
            'ends must be later than begins, not ' || coalesce(NEW.ends::text, 'NULL')
        WHEN char_length(NEW.reason) > 1000 THEN
            'reason has more than 1000 characters: make it shorter'
        WHEN NEW.every IS NOT NULL THEN coalesce(
            hybrid_monitors.refusal_of_interval(
                'every', NEW.every, interval '1 min', interval '366 days', '1m and 366 days'),
            CASE WHEN extract(epoch FROM NEW.every)
                <= extract(epoch FROM NEW.ends) - extract(epoch FROM NEW.begins)
                THEN 'every must be longer than from begins to ends' END)
    END;
    IF refusal IS NULL AND NEW.label IS NOT NULL THEN -- as labels of services are
        SELECT min(hybrid_monitors.refusal_of_label('label.' || left(l.key, 100), l.value) COLLATE "C")
        INTO refusal FROM jsonb_each(NEW.label) AS l;
    END IF;
    IF refusal IS NULL AND TG_OP = 'INSERT' AND (
        SELECT count(*) FROM (SELECT FROM hybrid_monitors.windows LIMIT most) AS w
    ) = most THEN
        refusal := format('id: there are %s already: delete those that are over', most);
    END IF;
    IF refusal IS NOT NULL THEN
        RAISE EXCEPTION 'windows.%', refusal
            USING ERRCODE = 'check_violation', SCHEMA = 'hybrid_monitors', TABLE = 'windows';
    END IF;
    RETURN NEW;
END
$$;

CREATE FUNCTION hybrid_monitors.close_host(host text) RETURNS boolean
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
#variable_conflict use_column
BEGIN
    -- As a key, which concerns open_hosts() alone: rounds and other readers wait for nobody.
    PERFORM FROM hybrid_monitors.hosts AS h WHERE h.host = close_host.host FOR UPDATE NOWAIT;
    RETURN FOUND
        AND NOT EXISTS (
            SELECT FROM hybrid_monitors.services AS s WHERE s.host = close_host.host AND s.active)
        AND NOT EXISTS (
            SELECT FROM hybrid_monitors.standings AS t WHERE t.host = close_host.host);
EXCEPTION WHEN lock_not_available THEN
    RETURN false; -- somebody opens it at this moment
END
$$;

CREATE FUNCTION hybrid_monitors.drop_partitions(most integer DEFAULT 20) RETURNS TABLE(what text, partition text)
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET "TimeZone" TO 'UTC'
    SET "DateStyle" TO 'ISO'
    SET lock_timeout TO '300ms'
    AS $$
#variable_conflict use_column
DECLARE
    due record;
BEGIN
    PERFORM FROM hybrid_monitors.upkeep_runs AS r FOR UPDATE SKIP LOCKED;
    IF NOT FOUND THEN
        RETURN;
    END IF;
    FOR due IN
        SELECT p.what AS whole, p.partition AS name
        FROM hybrid_monitors.partitions AS p
        JOIN hybrid_monitors.retention AS r ON r.what = p.what
        CROSS JOIN hybrid_monitors.upkeep_runs AS u
        WHERE NOT p.is_default AND p.upper + r.keep <= now()
            -- not before its hours are summed up
            AND (p.what <> 'latencies' OR u.rolled_up_until >= p.upper
                OR p.upper + r.keep <= now() - interval '3 days')
        ORDER BY p.upper
        LIMIT most
    LOOP
        partition := due.name;
        BEGIN
            EXECUTE format('LOCK TABLE ONLY hybrid_monitors.%I IN ACCESS EXCLUSIVE MODE', due.whole);
            EXECUTE format('LOCK TABLE ONLY hybrid_monitors.%I IN ACCESS EXCLUSIVE MODE NOWAIT', due.name);
            EXECUTE format('DROP TABLE hybrid_monitors.%I', due.name);
            what := 'dropped';
        EXCEPTION WHEN lock_not_available OR deadlock_detected THEN
            what := 'blocked';
            BEGIN
                IF pg_relation_size(format('hybrid_monitors.%I', due.name)::regclass) > 0 THEN
                    EXECUTE format('TRUNCATE hybrid_monitors.%I', due.name);
                    what := 'emptied';
                END IF;
            EXCEPTION WHEN lock_not_available OR deadlock_detected THEN
                NULL; -- somebody reads it, and will have ended another time
            END;
        END;
        RETURN NEXT;
    END LOOP;
END
$$;

CREATE FUNCTION hybrid_monitors.events_are_read() RETURNS boolean
    LANGUAGE sql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
    SELECT coalesce(
        pg_sequence_last_value('hybrid_monitors.event_readers_until')
        - (extract(epoch FROM clock_timestamp()) * 1000)::bigint BETWEEN 1 AND 60000, false)
$$;

CREATE FUNCTION hybrid_monitors.forget_leftovers(most integer DEFAULT 1000) RETURNS integer
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET lock_timeout TO '300ms'
    AS $$
#variable_conflict use_column
DECLARE
    forgotten integer := 0;
    n integer;
BEGIN
    DELETE FROM hybrid_monitors.dependencies AS d
    WHERE d.id IN (
        SELECT o.id FROM hybrid_monitors.dependencies AS o
        WHERE NOT EXISTS (SELECT FROM hybrid_monitors.services AS s WHERE s.id = o.service_id)
            AND NOT EXISTS (
                SELECT FROM hybrid_monitors.standings AS t WHERE t.service_id = o.service_id)
        LIMIT most
        FOR UPDATE OF o SKIP LOCKED
    );
    GET DIAGNOSTICS n = ROW_COUNT;
    forgotten := forgotten + n;
    DELETE FROM hybrid_monitors.asked AS a
    WHERE a.service_id IN (
        SELECT o.service_id FROM hybrid_monitors.asked AS o
        WHERE NOT EXISTS (
            SELECT FROM hybrid_monitors.services AS s WHERE s.id = o.service_id AND s.active)
        LIMIT most
        FOR UPDATE OF o SKIP LOCKED
    );
    GET DIAGNOSTICS n = ROW_COUNT;
    forgotten := forgotten + n;
    DELETE FROM hybrid_monitors.hosts AS h
    WHERE h.host IN (
        SELECT o.host FROM hybrid_monitors.hosts AS o
        WHERE o.looked_at < now() - interval '1 day'
            AND NOT EXISTS (
                SELECT FROM hybrid_monitors.services AS s WHERE s.host = o.host AND s.active)
            AND NOT EXISTS (
                SELECT FROM hybrid_monitors.standings AS t WHERE t.host = o.host)
        LIMIT most
        FOR UPDATE OF o SKIP LOCKED
    );
    GET DIAGNOSTICS n = ROW_COUNT;
    forgotten := forgotten + n;
    DELETE FROM hybrid_monitors.windows AS w
    WHERE w.id IN (
        SELECT o.id FROM hybrid_monitors.windows AS o
        WHERE o.every IS NULL AND o.ends < now() - interval '30 days'
            OR o.service_id IS NOT NULL AND NOT EXISTS (
                SELECT FROM hybrid_monitors.services AS s WHERE s.id = o.service_id)
        LIMIT most
        FOR UPDATE OF o SKIP LOCKED
    );
    GET DIAGNOSTICS n = ROW_COUNT;
    forgotten := forgotten + n;
    -- Changes of services that a round was woken for.
    DELETE FROM hybrid_runner.signals AS s
    WHERE s.id IN (
        SELECT o.id FROM hybrid_runner.signals AS o
        WHERE o.sent_at < now() - interval '1 hour' AND o.key LIKE 'monitors:%'
            AND EXISTS (SELECT FROM hybrid_runner.waits AS w WHERE w.signal_id = o.id)
        LIMIT most
        FOR UPDATE OF o SKIP LOCKED
    );
    GET DIAGNOSTICS n = ROW_COUNT;
    forgotten := forgotten + n;
    -- A service whose parent is gone depends on none. These are rows of editors: one that is held
    -- is left.
    UPDATE hybrid_monitors.services AS s SET depends_on = NULL
    WHERE s.id IN (
        SELECT o.id FROM hybrid_monitors.services AS o
        WHERE o.depends_on IS NOT NULL AND NOT EXISTS (
            SELECT FROM hybrid_monitors.services AS p WHERE p.id = o.depends_on)
        LIMIT most
        FOR NO KEY UPDATE OF o SKIP LOCKED
    );
    GET DIAGNOSTICS n = ROW_COUNT;
    RETURN forgotten + n + hybrid_monitors.forget_strays(most);
END
$$;

CREATE FUNCTION hybrid_monitors.forget_strays(most integer) RETURNS integer
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $_$
DECLARE
    kept record;

    forgotten integer := 0;

    n integer;

BEGIN
    FOR kept IN SELECT r.what, r.keep FROM hybrid_monitors.retention AS r ORDER BY r.what LOOP
        EXECUTE format(
            'DELETE FROM hybrid_monitors.%1$I AS d WHERE d.ctid = ANY (ARRAY('
            'SELECT o.ctid FROM hybrid_monitors.%1$I AS o WHERE o.%2$I < $1 LIMIT $2 '
            'FOR UPDATE SKIP LOCKED))',
            kept.what || '_default', CASE kept.what WHEN 'hours' THEN 'hour' ELSE 'at' END)
        USING now() - kept.keep, most;

        GET DIAGNOSTICS n = ROW_COUNT;

        forgotten := forgotten + n;

    END LOOP;

    RETURN forgotten;

END
$_$;

CREATE FUNCTION hybrid_monitors.is_window_open(begins timestamp with time zone, ends timestamp with time zone, every interval, at timestamp with time zone) RETURNS boolean
    LANGUAGE sql IMMUTABLE
    AS $$
    SELECT begins <= at AND CASE WHEN every IS NULL THEN at < ends
        ELSE pg_catalog.mod(
            extract(epoch FROM at) - extract(epoch FROM begins),
            greatest(extract(epoch FROM every), 1)
        ) < extract(epoch FROM ends) - extract(epoch FROM begins) END
$$;

CREATE FUNCTION hybrid_monitors.latency_bounds() RETURNS integer[]
    LANGUAGE sql IMMUTABLE
    AS $$
    SELECT ARRAY[1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000, 20000, 60000]
$$;

CREATE FUNCTION hybrid_monitors.make_partitions(days_ahead integer DEFAULT 7) RETURNS integer
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET "TimeZone" TO 'UTC'
    SET "DateStyle" TO 'ISO'
    SET lock_timeout TO '1s'
    AS $$
DECLARE
    wanted record;
    opens timestamptz;
    closes timestamptz;
    made integer := 0;
BEGIN
    PERFORM FROM hybrid_monitors.upkeep_runs AS r FOR UPDATE;
    FOR wanted IN
        SELECT r.what, r.unit, ('1 ' || r.unit)::interval AS width FROM hybrid_monitors.retention AS r
        ORDER BY r.what
    LOOP
        opens := date_trunc(wanted.unit, now());
        WHILE opens <= now() + make_interval(days => days_ahead) LOOP
            SELECT max(p.upper) INTO closes FROM hybrid_monitors.partitions AS p
            WHERE p.what = wanted.what AND p.lower <= opens AND p.upper > opens;
            IF closes IS NULL THEN
                SELECT least(date_trunc(wanted.unit, opens) + wanted.width, min(p.lower)) INTO closes
                FROM hybrid_monitors.partitions AS p
                WHERE p.what = wanted.what AND p.lower > opens;
                PERFORM hybrid_monitors.add_partition(wanted.what, opens, closes);
                made := made + 1;
            END IF;
            opens := closes;
        END LOOP;
    END LOOP;
    RETURN made;
END
$$;

CREATE FUNCTION hybrid_monitors.mend_set_back(host text, place double precision, looked timestamp with time zone) RETURNS void
    LANGUAGE sql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
    UPDATE hybrid_monitors.standings AS t SET
        due_at = least(
            t.due_at,
            hybrid_monitors.moment_of(
                s.id, s.every, mend_set_back.place, mend_set_back.looked)),
        -- not least(), which makes a time of what is NULL
        polled_at = CASE WHEN t.polled_at > mend_set_back.looked
            THEN mend_set_back.looked ELSE t.polled_at END,
        since = CASE WHEN t.since > mend_set_back.looked
            THEN mend_set_back.looked ELSE t.since END,
        contrary_since = CASE WHEN t.contrary_since > mend_set_back.looked
            THEN mend_set_back.looked ELSE t.contrary_since END,
        opened_at = CASE WHEN t.opened_at > mend_set_back.looked
            THEN mend_set_back.looked ELSE t.opened_at END
    FROM hybrid_monitors.services AS s
    WHERE t.host = mend_set_back.host AND s.id = t.service_id
$$;

CREATE FUNCTION hybrid_monitors.moment_of(id bigint, every interval, place double precision, looked timestamp with time zone) RETURNS timestamp with time zone
    LANGUAGE plpgsql IMMUTABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
DECLARE
    phase CONSTANT double precision := hybrid_monitors.phase_of(id);
    parts CONSTANT double precision := ceil(extract(epoch FROM every) / 30);
    apart CONSTANT double precision := extract(epoch FROM every) / parts;
    since double precision := extract(epoch FROM looked - timestamptz '2000-01-01 00:00:00+00');
BEGIN
    IF apart <= 5 THEN
        RETURN looked + every * phase;
    END IF;
    since := since - apart * place;
    RETURN looked + make_interval(
        secs => apart * (ceil(since / apart) + floor(phase * parts)) - since);
END
$$;

CREATE FUNCTION hybrid_monitors.open_hosts(hosts text[] DEFAULT NULL::text[]) RETURNS integer
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET lock_timeout TO '500ms'
    AS $$
DECLARE
    closed text[];
    host text;
    opened integer;
BEGIN
    -- Whoever ends the job of one of them has ended it before this looks, or looks after this: by
    -- close_host().
    PERFORM FROM hybrid_monitors.hosts AS h
    WHERE h.host = ANY (open_hosts.hosts)
    ORDER BY h.host COLLATE "C"
    FOR KEY SHARE;
    closed := ARRAY(
        SELECT h.host
        FROM (
            SELECT s.host FROM hybrid_monitors.services AS s
            WHERE s.active AND (open_hosts.hosts IS NULL OR s.host = ANY (open_hosts.hosts))
            UNION
            SELECT t.host FROM hybrid_monitors.standings AS t
            WHERE open_hosts.hosts IS NULL OR t.host = ANY (open_hosts.hosts)
        ) AS h (host)
        WHERE NOT EXISTS (
            SELECT FROM hybrid_runner.jobs AS j WHERE j.key = 'monitors:' || h.host)
        ORDER BY h.host COLLATE "C"
    );
    BEGIN
        RETURN hybrid_monitors.store_rounds(closed);
    EXCEPTION WHEN lock_not_available THEN
        opened := 0;
    END;
    SET LOCAL lock_timeout = '50ms';
    FOREACH host IN ARRAY closed LOOP
        BEGIN
            opened := opened + hybrid_monitors.store_rounds(ARRAY[host]);
        EXCEPTION WHEN lock_not_available THEN
            NULL; -- whoever stores it commits or not; the next look will do
        END;
    END LOOP;
    RETURN opened;
END
$$;

CREATE FUNCTION hybrid_monitors.phase_of(id bigint) RETURNS double precision
    LANGUAGE sql IMMUTABLE STRICT
    AS $$
    SELECT (pg_catalog.mod(id::numeric * 0.618033988749894848204586834365638118, 1))::double precision
$$;

CREATE FUNCTION hybrid_monitors.recognised_services(host text, taken bigint[], known_ids bigint[], known_versions xid[], known_standings xid[], has_windows boolean) RETURNS bigint[]
    LANGUAGE plpgsql STABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET enable_hashjoin TO 'true'
    SET enable_nestloop TO 'off'
    AS $$
#variable_conflict use_column
DECLARE
    asked bigint[] := '{}';
BEGIN
    IF EXISTS (SELECT FROM hybrid_monitors.asked) THEN
        asked := ARRAY(SELECT a.service_id FROM hybrid_monitors.asked AS a WHERE a.service_id = ANY (taken));
    END IF;
    RETURN ARRAY(
        SELECT s.id
        FROM hybrid_monitors.services AS s
        JOIN hybrid_monitors.standings AS t ON t.service_id = s.id AND t.host = s.host
        JOIN unnest(known_ids, known_versions, known_standings) AS k (id, version, standing)
            ON k.id = s.id
        WHERE s.host = recognised_services.host AND s.active AND t.host = recognised_services.host
            AND s.xmin = k.version AND t.xmin = k.standing AND s.id = ANY (taken)
            AND s.id <> ALL (asked)
            AND CASE WHEN has_windows OR s.depends_on IS NOT NULL OR s.quiet_until IS NOT NULL
                THEN hybrid_monitors.why_suppressed(s.id, s.depends_on, s.labels, s.quiet_until)
                END IS NULL
    );
END
$$;

CREATE FUNCTION hybrid_monitors.record_round(host text, job_id bigint, claim bigint, round jsonb, latency_services bigint[], latency_names text[], latencies integer[], last boolean, same_ids bigint[], same_dues timestamp with time zone[], same_polls timestamp with time zone[], same_latencies integer[], told_services bigint[], told_dependencies bigint[], told_latencies integer[]) RETURNS TABLE(next_due double precision, event_ids bigint[], status_changes integer, version bigint)
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET lock_timeout TO '5s'
    SET plan_cache_mode TO 'force_generic_plan'
    SET enable_seqscan TO 'off'
    SET enable_hashjoin TO 'off'
    SET enable_mergejoin TO 'off'
    SET jit TO 'off'
    AS $$
#variable_conflict use_column
DECLARE
    now CONSTANT timestamptz := clock_timestamp();
    usual hybrid_monitors.standings;
    decided hybrid_monitors.standings[];
    kept bigint[];
    same bigint[] := '{}';
    mentioned bigint[];
    first_due timestamptz;
    same_due timestamptz;
    gone bigint[];
    has_stopped bigint[];
BEGIN
    PERFORM FROM hybrid_runner.jobs AS j
    WHERE j.id = record_round.job_id AND j.claim = record_round.claim AND j.state = 'running'
        AND j.key = 'monitors:' || record_round.host
    FOR SHARE;
    IF NOT FOUND THEN
        RETURN;
    END IF;
    event_ids := '{}';
    status_changes := 0;
    version := pg_current_xact_id()::xid::text::bigint;

    IF round ? 'stopped' THEN
        -- Unless it goes on by now, or another round has told it.
        WITH deleted AS (
            DELETE FROM hybrid_monitors.standings AS t
            WHERE t.service_id = ANY (ARRAY(
                SELECT i.id::bigint FROM jsonb_array_elements_text(round -> 'stopped') AS i (id)))
                AND NOT EXISTS (
                    SELECT FROM hybrid_monitors.services AS s
                    WHERE s.id = t.service_id AND s.active AND s.host = t.host)
            RETURNING t.service_id
        )
        SELECT coalesce(array_agg(d.service_id), '{}') INTO has_stopped FROM deleted AS d;
        SELECT coalesce(array_agg(i.id), '{}') INTO gone
        FROM unnest(has_stopped) AS i (id)
        WHERE NOT EXISTS (SELECT FROM hybrid_monitors.services AS s WHERE s.id = i.id);
        IF cardinality(gone) > 0 THEN
            DELETE FROM hybrid_monitors.dependencies AS d WHERE d.service_id = ANY (gone);
            DELETE FROM hybrid_monitors.asked AS a WHERE a.service_id = ANY (gone);
        END IF;
    END IF;

    IF round ? 'standings' THEN
        -- What is not said of a standing.
        usual.failures := 0;
        usual.recoveries := 0;
        usual.is_down := false;
        usual.told_down := false;
        usual.is_unsettled := false;
        usual.breaker := 'closed';
        usual.warnings := '[]';
        SELECT array_agg(r), array_agg(s.id), min(r.due_at) INTO decided, kept, first_due
        FROM jsonb_populate_recordset(usual, round -> 'standings') AS r
        JOIN hybrid_monitors.services AS s ON s.id = r.service_id
        WHERE s.active AND s.host = record_round.host AND s.url = r.url;
    END IF;
    kept := coalesce(kept, '{}');
    IF cardinality(kept) > 0 THEN
        PERFORM hybrid_monitors.store_standings(record_round.host, decided);
        status_changes := hybrid_monitors.store_dependencies(kept, round, now);
        PERFORM hybrid_monitors.store_latencies(
            record_round.host, kept, latency_services, latency_names, latencies, now);
    END IF;
    IF cardinality(same_ids) > 0 THEN
        SELECT w.written, w.first_due INTO same, same_due
        FROM hybrid_monitors.store_same(
            record_round.host, same_ids, same_dues, same_polls, same_latencies, told_services,
            told_dependencies, told_latencies, now) AS w;
        first_due := least(first_due, same_due);
    END IF;
    IF round ? 'answered' AND EXISTS (SELECT FROM hybrid_monitors.asked) THEN
        DELETE FROM hybrid_monitors.asked AS a
        WHERE a.service_id = ANY (kept) AND a.service_id = ANY (ARRAY(
            SELECT i.id::bigint FROM jsonb_array_elements_text(round -> 'answered') AS i (id)));
    END IF;

    mentioned := ARRAY(
        SELECT (d.decided ->> 'service_id')::bigint
        FROM jsonb_array_elements(round -> 'standings') AS d (decided)) || same_ids;
    -- What was taken and is not recorded, or was dropped, is to be looked at again at once.
    UPDATE hybrid_monitors.hosts AS h SET
        looked_at = greatest(h.looked_at, now), -- the next one notices a clock that was set back
        next_due_at = least(
            h.next_due_at, first_due,
            CASE WHEN cardinality(kept) + cardinality(same) < cardinality(mentioned)
                OR record_round.last AND NOT h.round_services <@ mentioned THEN now END),
        round_services = CASE WHEN record_round.last THEN '{}' ELSE ARRAY(
            SELECT i.id FROM unnest(h.round_services) AS i (id) WHERE i.id <> ALL (mentioned)
        ) END
    WHERE h.host = record_round.host AND h.round_claim = record_round.claim
    RETURNING CASE
        WHEN NOT record_round.last OR h.next_due_at IS NULL THEN NULL
        ELSE extract(epoch FROM greatest(h.next_due_at, now) - now)
    END INTO next_due;
    IF round ? 'events' THEN
        event_ids := hybrid_monitors.store_events(kept, has_stopped, round);
    END IF;
    RETURN NEXT;
END
$$;

CREATE FUNCTION hybrid_monitors.refusal_of_interval(place text, value interval, lowest interval, highest interval, words text) RETURNS text
    LANGUAGE plpgsql IMMUTABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET "IntervalStyle" TO 'postgres'
    AS $$
BEGIN
    IF (value BETWEEN lowest AND highest) IS NOT TRUE THEN
        RETURN format('%s must be between %s, not %s', place, words, coalesce(value::text, 'NULL'));
    ELSIF extract(year FROM value) <> 0 OR extract(month FROM value) <> 0 THEN
        RETURN format('%s must be written without months, not %s', place, value);
    ELSIF abs(extract(day FROM value)) > extract(day FROM highest) THEN
        RETURN format('%s must be written without days, not %s', place, value);
    END IF;
    RETURN NULL;
END
$$;

CREATE FUNCTION hybrid_monitors.refusal_of_label(place text, value jsonb) RETURNS text
    LANGUAGE plpgsql IMMUTABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
BEGIN
    IF jsonb_typeof(value) NOT IN ('string', 'number', 'boolean') THEN
        RETURN place || ' must be a text, a number or a boolean';
    ELSIF jsonb_typeof(value) = 'string' AND char_length(value #>> '{}') > 200 THEN
        RETURN place || ' has more than 200 characters: make it shorter';
    -- Python reads no whole number of 4301 digits, and JSON elsewhere none beyond a double.
    ELSIF jsonb_typeof(value) = 'number' AND abs((value #>> '{}')::numeric) > 1e15 THEN
        RETURN place || ' must be between -1e15 and 1e15';
    END IF;
    RETURN NULL;
END
$$;

CREATE FUNCTION hybrid_monitors.refusal_of_name(place text, name text) RETURNS text
    LANGUAGE plpgsql IMMUTABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $_$
BEGIN
    IF name IS NULL OR char_length(name) NOT BETWEEN 1 AND 200 THEN
        RETURN format('%s must be 1 to 200 characters, not %s', place,
            coalesce(char_length(name)::text, 'NULL'));

    ELSIF name ~ '[[:cntrl:]\u0080-\u009f\u200e\u200f\u2028-\u202e\u2066-\u2069]' THEN
        RETURN place || ' has a control character in it: leave it out';

    ELSIF name ~ '^\s|\s$' THEN
        RETURN place || ' begins or ends with a blank: leave it out';

    END IF;

    RETURN NULL;

END
$_$;

CREATE FUNCTION hybrid_monitors.refusal_of_parent(id bigint, parent bigint) RETURNS text
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
#variable_conflict use_column
DECLARE
    link bigint := refusal_of_parent.parent;
    links integer := 0;
BEGIN
    IF link = refusal_of_parent.id THEN
        RETURN 'depends_on must be another service than itself';
    ELSIF NOT EXISTS (SELECT FROM hybrid_monitors.services AS s WHERE s.id = link) THEN
        RETURN format('depends_on must be the id of another service, and there is none with %s', link);
    END IF;
    LOOP
        SELECT s.depends_on INTO link FROM hybrid_monitors.services AS s WHERE s.id = link;
        EXIT WHEN link IS NULL;
        links := links + 1;
        IF link = refusal_of_parent.id THEN
            RETURN format('depends_on makes a circle: %s depends on this one', refusal_of_parent.parent);
        ELSIF links > 100 THEN
            RETURN 'depends_on has more than 100 services above it: make the chain shorter';
        END IF;
    END LOOP;
    RETURN NULL;
END
$$;

CREATE FUNCTION hybrid_monitors.refusal_of_url(url text) RETURNS text
    LANGUAGE plpgsql IMMUTABLE STRICT
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $_$
DECLARE
    place CONSTANT text := substring(url FROM '^[Hh][Tt][Tt][Pp][Ss]?://([^/?#]+)');

    host CONSTANT text := substring(place FROM '^(\[[0-9A-Za-z:.%]+\]|[^]:[]+)(?::[0-9]*)?$');

    port CONSTANT text := substring(place FROM ':([0-9]*)$');

BEGIN
    IF octet_length(url) > 2048 THEN
        RETURN 'url has more than 2048 bytes: make it shorter';

    ELSIF url ~ '[\u0001-\u0020\u007f\\]' THEN
        RETURN 'url has a blank or a control character in it: write it as %20 or leave it out';

    ELSIF place LIKE '%@%' THEN
        RETURN 'url has a user or password in it: put it into headers, as a secret';

    ELSIF host IS NULL AND place ~ '^[^]:[]+:[^]:]*$' THEN
        RETURN 'url has a port that is not 1 to 65535';

    ELSIF host IS NULL THEN
        RETURN 'url must begin with http:// or https:// and name a host';

    ELSIF octet_length(host) > 253 THEN
        RETURN 'url has a host of more than 253 bytes: make it shorter';

    ELSIF place <> host AND (port = '' OR left(port, 6)::integer NOT BETWEEN 1 AND 65535) THEN
        RETURN 'url has a port that is not 1 to 65535';

    END IF;

    RETURN NULL;

END
$_$;

CREATE FUNCTION hybrid_monitors.rename_dependencies(most integer DEFAULT 10000) RETURNS integer
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
DECLARE
    renamed integer;
BEGIN
    UPDATE hybrid_monitors.dependencies AS d
    SET canonical_name = n.canonical_name
    FROM (
        SELECT o.id, coalesce(a.canonical_name, o.name) AS canonical_name
        FROM hybrid_monitors.dependencies AS o
        LEFT JOIN hybrid_monitors.aliases AS a ON a.alias = o.name
        WHERE o.canonical_name <> coalesce(a.canonical_name, o.name)
        LIMIT most
        FOR NO KEY UPDATE OF o SKIP LOCKED
    ) AS n
    WHERE d.id = n.id;
    GET DIAGNOSTICS renamed = ROW_COUNT;
    RETURN renamed;
END
$$;

CREATE FUNCTION hybrid_monitors.roll_up_hour() RETURNS boolean
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET "TimeZone" TO 'UTC'
    AS $$
#variable_conflict use_column
DECLARE
    bounds CONSTANT integer[] := hybrid_monitors.latency_bounds();
    until timestamptz;
    oldest timestamptz;
BEGIN
    -- Two at once: the other one does it.
    SELECT r.rolled_up_until INTO until FROM hybrid_monitors.upkeep_runs AS r FOR UPDATE SKIP LOCKED;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    -- Postgres's clock was forward and is set back: these hours come once more.
    IF until > now() THEN
        until := date_trunc('hour', now());
    END IF;
    SELECT date_trunc('hour', min(l.at)) INTO oldest FROM hybrid_monitors.latencies AS l
    WHERE l.at >= coalesce(until, '-infinity');
    -- Hours in which nobody polled are passed over.
    oldest := coalesce(oldest, greatest(until, date_trunc('hour', now() - interval '2 minutes')));
    IF oldest + interval '1 hour' > now() - interval '2 minutes' THEN
        UPDATE hybrid_monitors.upkeep_runs AS r SET rolled_up_until = oldest
        WHERE r.rolled_up_until IS DISTINCT FROM oldest;
        RETURN false;
    END IF;
    INSERT INTO hybrid_monitors.hours AS h (hour, dependency_id, answers, sum_ms, max_ms, buckets)
    SELECT
        oldest, b.dependency_id, sum(b.answers), sum(b.sum_ms), max(b.max_ms),
        ARRAY(
            SELECT coalesce((jsonb_object_agg(b.bucket, b.answers) ->> n.place::text)::integer, 0)
            FROM generate_series(0, cardinality(bounds)) AS n (place)
            ORDER BY n.place
        )
    FROM (
        SELECT
            u.dependency_id, width_bucket(u.ms, c.lower) AS bucket,
            count(*)::integer AS answers, sum(u.ms) AS sum_ms, max(u.ms) AS max_ms
        FROM hybrid_monitors.latencies AS l
        CROSS JOIN LATERAL unnest(l.dependency_ids, l.milliseconds) AS u (dependency_id, ms)
        -- a bucket holds its upper bound: its lower one is one more than that of the one before
        CROSS JOIN (SELECT ARRAY(SELECT i.bound + 1 FROM unnest(bounds) AS i (bound))) AS c (lower)
        WHERE l.at >= oldest AND l.at < oldest + interval '1 hour'
        GROUP BY u.dependency_id, 2
    ) AS b
    GROUP BY b.dependency_id
    ON CONFLICT (dependency_id, hour) DO UPDATE SET
        answers = excluded.answers, sum_ms = excluded.sum_ms, max_ms = excluded.max_ms,
        buckets = excluded.buckets;
    UPDATE hybrid_monitors.upkeep_runs AS r SET rolled_up_until = oldest + interval '1 hour';
    RETURN true;
END
$$;

CREATE FUNCTION hybrid_monitors.service_columns_of(columns jsonb) RETURNS hybrid_monitors.service_columns
    LANGUAGE plpgsql STABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
#variable_conflict use_column
DECLARE
    k jsonb := jsonb_strip_nulls(columns - ARRAY['mapping', 'expect', 'headers', 'labels']);
    c hybrid_monitors.service_columns;
BEGIN
    c := jsonb_populate_record(c, k - ARRAY['every', 'timeout', 'depends_on']);
    c.every := make_interval(secs => (k ->> 'every')::double precision);
    c.timeout := make_interval(secs => (k ->> 'timeout')::double precision);
    c.mapping := nullif(columns -> 'mapping', 'null');
    c.expect := nullif(columns -> 'expect', 'null');
    c.headers := nullif(columns -> 'headers', 'null');
    c.labels := nullif(columns -> 'labels', 'null');
    IF k ? 'depends_on' THEN
        SELECT s.id INTO c.depends_on FROM hybrid_monitors.services AS s
        WHERE s.name = k ->> 'depends_on';
        IF NOT FOUND THEN
            RAISE EXCEPTION 'services.depends_on must be another service, and there is none called %',
                quote_literal(left(k ->> 'depends_on', 200))
                USING ERRCODE = 'invalid_parameter_value';
        END IF;
    END IF;
    RETURN c;
END
$$;

CREATE FUNCTION hybrid_monitors.services_changed(hosts text[], are_opened boolean DEFAULT false) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
BEGIN
    IF cardinality(services_changed.hosts) IS NULL THEN
        RETURN;
    END IF;
    INSERT INTO hybrid_runner.signals (key)
    SELECT 'monitors:' || h.host FROM unnest(services_changed.hosts) AS h (host);
    INSERT INTO hybrid_runner.jobs (kind, queue, payload)
    SELECT 'monitors.open', 'monitors', jsonb_build_object('hosts', jsonb_agg(h.host))
    FROM (
        SELECT n.host, (row_number() OVER () - 1) / 500 AS batch
        FROM unnest(services_changed.hosts) AS n (host)
        WHERE services_changed.are_opened OR NOT EXISTS (
            SELECT FROM hybrid_runner.jobs AS j WHERE j.key = 'monitors:' || n.host)
    ) AS h
    GROUP BY h.batch;
END
$$;

CREATE FUNCTION hybrid_monitors.services_deleted() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
BEGIN
    PERFORM hybrid_monitors.services_changed(ARRAY(
        SELECT DISTINCT d.host FROM deleted AS d WHERE d.active));
    RETURN NULL;
END
$$;

CREATE FUNCTION hybrid_monitors.services_inserted() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
BEGIN
    PERFORM hybrid_monitors.services_changed(ARRAY(
        SELECT DISTINCT i.host FROM inserted AS i WHERE i.active), are_opened => true);
    RETURN NULL;
END
$$;

CREATE FUNCTION hybrid_monitors.services_truncated() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
BEGIN
    PERFORM hybrid_monitors.services_changed(ARRAY(
        SELECT DISTINCT t.host FROM hybrid_monitors.standings AS t));
    RETURN NULL;
END
$$;

CREATE FUNCTION hybrid_monitors.services_updated() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
DECLARE
    with_more text[]; -- to do there than before
    others text[];
BEGIN
    SELECT
        array_agg(c.host) FILTER (WHERE c.has_more), array_agg(c.host) FILTER (WHERE NOT c.has_more)
    INTO with_more, others
    FROM (
        SELECT
            h.host,
            bool_or(h.host = n.host AND n.active AND (o.host <> n.host OR NOT o.active)) AS has_more
        FROM old_rows AS o
        JOIN new_rows AS n ON n.id = o.id
        CROSS JOIN LATERAL unnest(ARRAY[o.host, n.host]) AS h (host)
        WHERE (o.active OR n.active) AND to_jsonb(o) IS DISTINCT FROM to_jsonb(n)
        GROUP BY h.host
    ) AS c;
    PERFORM hybrid_monitors.services_changed(with_more, are_opened => true);
    PERFORM hybrid_monitors.services_changed(others);
    RETURN NULL;
END
$$;

CREATE FUNCTION hybrid_monitors.spread_services(host text, place double precision, last_look timestamp with time zone, looked timestamp with time zone) RETURNS boolean
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET plan_cache_mode TO 'force_generic_plan'
    SET enable_seqscan TO 'off'
    SET enable_hashjoin TO 'off'
    SET enable_mergejoin TO 'off'
    SET jit TO 'off'
    AS $$
#variable_conflict use_column
DECLARE
    most CONSTANT integer := 100;
    has_new boolean;
    new integer;
    put_off integer := 0;
    put_off_again integer := 0;
BEGIN
    SELECT EXISTS (
        SELECT FROM hybrid_monitors.services AS s
        WHERE s.host = spread_services.host AND s.active AND NOT EXISTS (
            SELECT FROM hybrid_monitors.standings AS t WHERE t.service_id = s.id)
    ) INTO has_new;
    IF has_new THEN
        SELECT count(*) INTO new
        FROM (
            SELECT FROM hybrid_monitors.services AS s
            WHERE s.active AND NOT EXISTS (
                SELECT FROM hybrid_monitors.standings AS t WHERE t.service_id = s.id)
            LIMIT most + 1
        ) AS n;
        IF new > most THEN
            INSERT INTO hybrid_monitors.standings AS t
                (service_id, due_at, is_started, host, name, url)
            SELECT
                s.id, hybrid_monitors.moment_of(s.id, s.every, place, looked), false, s.host, s.name,
                s.url
            FROM hybrid_monitors.services AS s
            WHERE s.host = spread_services.host AND s.active
                AND NOT EXISTS (
                    SELECT FROM hybrid_monitors.standings AS t WHERE t.service_id = s.id)
            ON CONFLICT (service_id) DO NOTHING;
            GET DIAGNOSTICS put_off = ROW_COUNT;
        END IF;
    END IF;

    IF EXISTS (
        SELECT FROM hybrid_monitors.standings AS t
        JOIN hybrid_monitors.services AS s ON s.id = t.service_id
        WHERE t.host = spread_services.host AND t.due_at > last_look - interval '5 seconds'
            AND greatest(t.due_at, last_look)
                < looked - least(interval '10 seconds', s.every * 1.4)
    ) THEN
        UPDATE hybrid_monitors.standings AS t
        SET due_at = hybrid_monitors.moment_of(s.id, s.every, place, looked)
        FROM hybrid_monitors.services AS s
        WHERE t.host = spread_services.host AND t.due_at > last_look - interval '5 seconds'
            AND t.due_at <= looked
            -- not one that was put off since its last poll: it would never be polled
            AND t.due_at <= t.polled_at + s.every
            AND s.id = t.service_id AND s.active AND s.host = t.host;
        GET DIAGNOSTICS put_off_again = ROW_COUNT;
    END IF;
    RETURN put_off + put_off_again > 0;
END
$$;

CREATE FUNCTION hybrid_monitors.stopped_services(host text, taken bigint[]) RETURNS json
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
#variable_conflict use_column
BEGIN
    -- Of one whose first poll was put off nothing was told.
    DELETE FROM hybrid_monitors.standings AS t
    WHERE t.host = stopped_services.host AND NOT t.is_started AND NOT EXISTS (
        SELECT FROM hybrid_monitors.services AS s
        WHERE s.id = t.service_id AND s.active AND s.host = t.host);
    RETURN (
        SELECT coalesce(json_agg(json_build_array(g.service_id, g.name, g.is_deleted)), '[]')
        FROM (
            SELECT t.service_id, t.name, s.id IS NULL AS is_deleted
            FROM hybrid_monitors.standings AS t
            LEFT JOIN hybrid_monitors.services AS s ON s.id = t.service_id
            WHERE t.host = stopped_services.host
                AND (s.id IS NULL OR NOT s.active OR s.host <> stopped_services.host)
            UNION ALL
            -- What comes from another host has stopped there before it starts here.
            SELECT t.service_id, t.name, false
            FROM unnest(taken) AS i (id)
            JOIN hybrid_monitors.standings AS t ON t.service_id = i.id
            WHERE t.host <> stopped_services.host AND t.is_started
            LIMIT 1000
        ) AS g
    );
END
$$;

CREATE FUNCTION hybrid_monitors.store_dependencies(kept bigint[], round jsonb, now timestamp with time zone) RETURNS integer
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
#variable_conflict use_column
DECLARE
    changes integer := 0;
BEGIN
    IF round ? 'dependencies' THEN
        WITH named AS MATERIALIZED (
            -- one of each name: a statement may not touch a row twice
            SELECT DISTINCT ON (r.service_id, r.name) r.*, c.status_changed
            FROM jsonb_array_elements(round -> 'dependencies') WITH ORDINALITY AS e (value, place)
            CROSS JOIN LATERAL jsonb_populate_record(NULL::hybrid_monitors.dependencies, e.value) AS r
            CROSS JOIN LATERAL (
                SELECT (e.value ->> 'status_changed')::boolean) AS c (status_changed)
            WHERE r.service_id = ANY (kept)
            ORDER BY r.service_id, r.name, e.place
        ),
        written AS (
            INSERT INTO hybrid_monitors.dependencies AS d (
                service_id, name, canonical_name, type, description, impact, healthy, state, code,
                latency_ms, skipped, contact, check_details, error, error_message, last_checked,
                last_status_change, contrary, told, missing, changed_at
            )
            SELECT
                n.service_id, n.name, coalesce(a.canonical_name, n.name), n.type, n.description,
                n.impact, n.healthy, n.state, n.code, n.latency_ms, n.skipped,
                nullif(n.contact, 'null'), nullif(n.check_details, 'null'), nullif(n.error, 'null'),
                n.error_message, coalesce(n.last_checked, now),
                CASE WHEN n.status_changed THEN now END, n.contrary, n.told, n.missing, now
            FROM named AS n
            LEFT JOIN hybrid_monitors.aliases AS a ON a.alias = n.name
            ORDER BY n.service_id, n.name
            ON CONFLICT (service_id, name) DO UPDATE SET
                canonical_name = excluded.canonical_name, type = excluded.type,
                description = excluded.description, impact = excluded.impact,
                healthy = excluded.healthy, state = excluded.state, code = excluded.code,
                latency_ms = excluded.latency_ms, skipped = excluded.skipped,
                contact = excluded.contact, check_details = excluded.check_details,
                error = excluded.error, error_message = excluded.error_message,
                last_checked = excluded.last_checked,
                last_status_change = coalesce(excluded.last_status_change, d.last_status_change),
                contrary = excluded.contrary, told = excluded.told, missing = excluded.missing,
                changed_at = excluded.changed_at
        )
        SELECT count(*) FILTER (WHERE n.status_changed) INTO changes FROM named AS n;
    END IF;
    IF round ? 'errors' THEN
        INSERT INTO hybrid_monitors.errors (at, service_id, dependency_id, error, message)
        SELECT now, n.service_id, d.id, nullif(n.error, 'null'), n.message
        FROM jsonb_to_recordset(round -> 'errors')
            AS n (service_id bigint, name text, error jsonb, message text)
        LEFT JOIN hybrid_monitors.dependencies AS d
            ON d.service_id = n.service_id AND d.name = n.name
        WHERE n.service_id = ANY (kept) AND (n.name IS NULL OR d.id IS NOT NULL);
        UPDATE hybrid_monitors.dependencies AS d SET last_error = nullif(n.error, 'null')
        FROM jsonb_to_recordset(round -> 'errors') AS n (service_id bigint, name text, error jsonb)
        WHERE d.service_id = n.service_id AND d.name = n.name AND n.service_id = ANY (kept);
    END IF;
    IF round ? 'gone' THEN
        DELETE FROM hybrid_monitors.dependencies AS d
        USING jsonb_to_recordset(round -> 'gone') AS n (service_id bigint, name text)
        WHERE d.service_id = n.service_id AND d.name = n.name AND n.service_id = ANY (kept);
    END IF;
    RETURN changes;
END
$$;

CREATE FUNCTION hybrid_monitors.store_events(kept bigint[], stopped bigint[], round jsonb) RETURNS bigint[]
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
#variable_conflict use_column
DECLARE
    happened record;
    numbers bigint[];
    newest bigint;
BEGIN
    SELECT
        array_agg(n.kind ORDER BY n.place) AS kinds, array_agg(n.service_id ORDER BY n.place) AS ids,
        array_agg(n.payload ORDER BY n.place) AS payloads,
        array_agg(n.suppressed ORDER BY n.place) AS reasons
    INTO happened
    FROM (
        SELECT e.kind, e.service_id, e.payload, e.suppressed, e.is_stop, e.place
        FROM ROWS FROM (
            jsonb_to_recordset(round -> 'events') AS (
                kind text, service_id bigint, payload jsonb, suppressed text, is_stop boolean)
        ) WITH ORDINALITY AS e (kind, service_id, payload, suppressed, is_stop, place)
    ) AS n
    WHERE n.service_id = ANY (CASE WHEN n.is_stop THEN store_events.stopped ELSE store_events.kept END);
    IF happened.ids IS NULL THEN
        RETURN '{}';
    END IF;
    UPDATE hybrid_monitors.event_numbers AS n SET last = n.last + cardinality(happened.ids)
    RETURNING n.last INTO newest;
    WITH new AS MATERIALIZED (
        SELECT
            newest - cardinality(happened.ids) + e.place AS id, clock_timestamp() AS at, e.kind,
            e.service_id, e.payload, e.suppressed
        FROM unnest(happened.kinds, happened.ids, happened.payloads, happened.reasons)
            WITH ORDINALITY AS e (kind, service_id, payload, suppressed, place)
    ),
    made AS (
        INSERT INTO hybrid_monitors.events (id, at, kind, service_id, payload, suppressed)
        SELECT n.id, n.at, n.kind, n.service_id, n.payload, n.suppressed FROM new AS n
    ),
    told AS (
        INSERT INTO hybrid_runner.jobs (kind, queue, payload, max_attempts)
        SELECT
            s.job_kind, s.queue,
            n.payload || jsonb_build_object('id', n.id, 'kind', n.kind, 'at', n.at), s.max_attempts
        FROM new AS n
        JOIN jsonb_to_recordset(round -> 'subscriptions')
            AS s (event text, job_kind text, queue text, max_attempts smallint) ON s.event = n.kind
        WHERE n.suppressed IS NULL
        ORDER BY n.id
    )
    SELECT array_agg(n.id ORDER BY n.id) INTO numbers FROM new AS n;
    RETURN numbers;
END
$$;

CREATE FUNCTION hybrid_monitors.store_latencies(host text, kept bigint[], services bigint[], names text[], latencies integer[], now timestamp with time zone) RETURNS void
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET enable_hashjoin TO 'true'
    SET enable_nestloop TO 'false'
    AS $$
#variable_conflict use_column
BEGIN
    IF cardinality(store_latencies.services) = 0 THEN
        RETURN;
    END IF;
    INSERT INTO hybrid_monitors.latencies (at, host, dependency_ids, milliseconds)
    SELECT store_latencies.now, store_latencies.host, l.ids, l.ms
    FROM (
        WITH own AS MATERIALIZED (
            SELECT d.id, d.service_id, d.name FROM hybrid_monitors.dependencies AS d
            WHERE d.service_id = ANY (store_latencies.kept)
        )
        SELECT array_agg(o.id) AS ids, array_agg(n.ms) AS ms
        FROM unnest(store_latencies.services, store_latencies.names, store_latencies.latencies)
            AS n (service_id, name, ms)
        JOIN own AS o ON o.service_id = n.service_id AND o.name = n.name
        WHERE n.ms > 0
    ) AS l
    WHERE l.ids IS NOT NULL;
END
$$;

CREATE FUNCTION hybrid_monitors.store_rounds(hosts text[]) RETURNS integer
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
DECLARE
    added integer;
BEGIN
    INSERT INTO hybrid_runner.jobs (kind, queue, key, payload)
    SELECT 'monitors.round', 'monitors', 'monitors:' || h.host, jsonb_build_object('host', h.host)
    FROM unnest(store_rounds.hosts) WITH ORDINALITY AS h (host, place)
    ORDER BY h.place
    ON CONFLICT (key) WHERE key IS NOT NULL DO NOTHING;
    GET DIAGNOSTICS added = ROW_COUNT;
    RETURN added;
END
$$;

CREATE FUNCTION hybrid_monitors.store_same(host text, ids bigint[], dues timestamp with time zone[], polls timestamp with time zone[], latencies integer[], told_services bigint[], told_dependencies bigint[], told_latencies integer[], now timestamp with time zone, OUT written bigint[], OUT first_due timestamp with time zone) RETURNS record
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
#variable_conflict use_column
BEGIN
    WITH changed AS (
        UPDATE hybrid_monitors.standings AS t SET
            due_at = n.due_at, polled_at = n.polled_at, latency_ms = n.ms
        FROM unnest(ids, dues, polls, latencies) AS n (id, due_at, polled_at, ms)
        JOIN hybrid_monitors.services AS s ON s.id = n.id
        WHERE t.service_id = n.id AND t.url = s.url AND s.active AND s.host = store_same.host
        RETURNING t.service_id, t.due_at
    )
    SELECT coalesce(array_agg(c.service_id), '{}'), min(c.due_at)
    INTO store_same.written, store_same.first_due FROM changed AS c;
    IF cardinality(written) < cardinality(ids)
        OR cardinality(told_dependencies) <> cardinality(told_latencies)
        OR array_position(told_dependencies, NULL) IS NOT NULL
        OR (0 < ALL (told_latencies)) IS NOT true
    THEN
        SELECT coalesce(array_agg(u.id), '{}'), coalesce(array_agg(u.ms), '{}')
        INTO told_dependencies, told_latencies
        FROM unnest(told_services, told_dependencies, told_latencies) AS u (service_id, id, ms)
        WHERE u.service_id = ANY (written) AND u.id IS NOT NULL AND u.ms > 0;
    END IF;
    -- Longer rows would be compressed, which takes as long as all the rest.
    INSERT INTO hybrid_monitors.latencies (at, host, dependency_ids, milliseconds)
    SELECT
        store_same.now, store_same.host, told_dependencies[c.first:c.first + 139],
        told_latencies[c.first:c.first + 139]
    FROM generate_series(1, cardinality(told_dependencies), 140) AS c (first);
END
$$;

CREATE TABLE hybrid_monitors.standings (
    service_id bigint NOT NULL,
    due_at timestamp with time zone NOT NULL,
    polled_at timestamp with time zone,
    latency_ms integer,
    failures integer DEFAULT 0 NOT NULL,
    recoveries integer DEFAULT 0 NOT NULL,
    ok boolean,
    is_down boolean DEFAULT false NOT NULL,
    told_down boolean DEFAULT false NOT NULL,
    is_unsettled boolean DEFAULT false NOT NULL,
    is_started boolean DEFAULT true NOT NULL,
    since timestamp with time zone,
    contrary_since timestamp with time zone,
    opened_at timestamp with time zone,
    certificate_ends_at timestamp with time zone,
    breaker text DEFAULT 'closed'::text NOT NULL,
    digest text,
    host text NOT NULL COLLATE pg_catalog."C",
    name text NOT NULL,
    url text NOT NULL,
    failure text,
    error text,
    warnings jsonb DEFAULT '[]'::jsonb NOT NULL,
    CONSTRAINT standings_breaker_is_known CHECK ((breaker = ANY (ARRAY['closed'::text, 'open'::text, 'half_open'::text])))
)
WITH (fillfactor='60', autovacuum_vacuum_scale_factor='1', autovacuum_vacuum_threshold='1000', autovacuum_analyze_scale_factor='20');

CREATE FUNCTION hybrid_monitors.store_standings(host text, decided hybrid_monitors.standings[]) RETURNS void
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
#variable_conflict use_column
DECLARE
    changed bigint[];
BEGIN
    WITH written AS (
        UPDATE hybrid_monitors.standings AS t SET
            due_at = d.due_at, polled_at = d.polled_at, latency_ms = d.latency_ms,
            failures = d.failures, recoveries = d.recoveries, ok = d.ok, is_down = d.is_down,
            told_down = d.told_down, is_unsettled = d.is_unsettled, is_started = true,
            since = d.since, contrary_since = d.contrary_since, opened_at = d.opened_at,
            certificate_ends_at = d.certificate_ends_at, breaker = d.breaker, digest = d.digest,
            host = s.host, name = s.name, url = d.url, failure = d.failure, error = d.error,
            warnings = d.warnings
        FROM unnest(store_standings.decided) AS d
        JOIN hybrid_monitors.services AS s ON s.id = d.service_id
        WHERE t.service_id = d.service_id
        RETURNING t.service_id
    )
    SELECT coalesce(array_agg(w.service_id), '{}') INTO changed FROM written AS w;
    IF cardinality(changed) = cardinality(store_standings.decided) THEN
        RETURN;
    END IF;
    INSERT INTO hybrid_monitors.standings AS t (
        service_id, due_at, polled_at, latency_ms, failures, recoveries, ok, is_down, told_down,
        is_unsettled, since, contrary_since, opened_at, certificate_ends_at, breaker, digest, host,
        name, url, failure, error, warnings
    )
    SELECT
        d.service_id, d.due_at, d.polled_at, d.latency_ms, d.failures, d.recoveries, d.ok,
        d.is_down, d.told_down, d.is_unsettled, d.since, d.contrary_since, d.opened_at,
        d.certificate_ends_at, d.breaker, d.digest, store_standings.host, s.name, d.url, d.failure,
        d.error, d.warnings
    FROM unnest(store_standings.decided) AS d
    JOIN hybrid_monitors.services AS s ON s.id = d.service_id
    WHERE d.service_id <> ALL (changed)
    ORDER BY d.service_id
    ON CONFLICT (service_id) DO NOTHING;
END
$$;

CREATE FUNCTION hybrid_monitors.survey_host(host text, on_its_way bigint[], last_look timestamp with time zone, looked timestamp with time zone, OUT due bigint[], OUT next_due timestamp with time zone, OUT new integer, OUT here integer, OUT is_late boolean) RETURNS record
    LANGUAGE plpgsql STABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET enable_hashjoin TO 'true'
    SET enable_nestloop TO 'off'
    AS $$
#variable_conflict use_column
DECLARE
    asked bigint[] := '{}';
BEGIN
    IF EXISTS (SELECT FROM hybrid_monitors.asked) THEN
        asked := ARRAY(
            SELECT a.service_id FROM hybrid_monitors.asked AS a
            WHERE EXISTS (
                SELECT FROM hybrid_monitors.services AS s
                WHERE s.id = a.service_id AND s.host = survey_host.host));
    END IF;
    SELECT
        array_agg(n.id ORDER BY n.is_asked DESC, n.polled_at NULLS FIRST, n.id)
            FILTER (WHERE n.due <= looked AND n.is_free),
        min(n.due) FILTER (WHERE n.due > looked AND n.is_free),
        count(*) FILTER (WHERE n.is_new), count(*) FILTER (WHERE NOT n.is_new),
        coalesce(bool_or(n.is_late), false)
    INTO survey_host.due, survey_host.next_due, survey_host.new, survey_host.here, survey_host.is_late
    FROM (
        SELECT
            s.id, t.polled_at, t.service_id IS NULL AS is_new, a.id IS NOT NULL AS is_asked,
            s.id <> ALL (on_its_way) AS is_free,
            -- What came due in the last seconds before that look waited for the next one.
            t.due_at > last_look - interval '5 seconds'
                AND greatest(t.due_at, last_look)
                    < looked - least(interval '10 seconds', s.every * 1.4) AS is_late,
            CASE WHEN t.url = s.url AND a.id IS NULL THEN t.due_at ELSE '-infinity' END AS due
        FROM hybrid_monitors.services AS s
        LEFT JOIN hybrid_monitors.standings AS t
            ON t.service_id = s.id AND t.host = survey_host.host
        LEFT JOIN unnest(asked) AS a (id) ON a.id = s.id
        WHERE s.host = survey_host.host AND s.active
    ) AS n;
END
$$;

CREATE FUNCTION hybrid_monitors.take_round(host text, job_id bigint, claim bigint, most integer, known_ids bigint[], known_versions xid[], known_standings xid[]) RETURNS json
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET lock_timeout TO '5s'
    SET plan_cache_mode TO 'force_generic_plan'
    SET enable_seqscan TO 'off'
    SET enable_hashjoin TO 'off'
    SET enable_mergejoin TO 'off'
    SET jit TO 'off'
    AS $$
#variable_conflict use_column
DECLARE
    -- as place_of() in policy/monitor_rounds.py has it
    place CONSTANT double precision := hybrid_monitors.phase_of(take_round.job_id);
    looked timestamptz;
    last_look timestamptz;
    on_its_way bigint[];
    is_known boolean;
    has_windows CONSTANT boolean := EXISTS (SELECT FROM hybrid_monitors.windows);
    own record;
    taken bigint[];
    recognised bigint[] := '{}';
    stopped json := '[]';
    services json := '[]';
BEGIN
    PERFORM FROM hybrid_runner.jobs AS j
    WHERE j.id = take_round.job_id AND j.claim = take_round.claim AND j.state = 'running'
        AND j.key = 'monitors:' || take_round.host
    FOR SHARE;
    IF NOT FOUND THEN
        RETURN NULL;
    END IF;
    SELECT
        h.looked_at,
        CASE WHEN h.round_job = take_round.job_id AND h.round_claim = take_round.claim
            THEN h.round_services ELSE '{}' END
    INTO last_look, on_its_way
    FROM hybrid_monitors.hosts AS h WHERE h.host = take_round.host FOR NO KEY UPDATE;
    is_known := FOUND;
    on_its_way := coalesce(on_its_way, '{}');
    looked := clock_timestamp();
    IF last_look > looked + interval '5 seconds' THEN
        PERFORM hybrid_monitors.mend_set_back(take_round.host, place, looked);
    END IF;

    FOR pass IN 1..2 LOOP -- the second time when some were put off
        own := hybrid_monitors.survey_host(take_round.host, on_its_way, last_look, looked);
        EXIT WHEN pass = 2 OR own.new = 0 AND NOT own.is_late;
        EXIT WHEN NOT hybrid_monitors.spread_services(
            take_round.host, place, last_look, looked);
    END LOOP;
    taken := coalesce((own.due)[1:take_round.most], '{}');

    -- What has no standing here may have one elsewhere; and a standing here that is of no service
    -- here is of one that has stopped.
    IF own.new > 0 OR own.here <> (
        SELECT count(*) FROM hybrid_monitors.standings AS t WHERE t.host = take_round.host
    ) THEN
        stopped := hybrid_monitors.stopped_services(take_round.host, taken);
    END IF;

    IF cardinality(taken) > 0 AND cardinality(known_ids) > 0 THEN
        recognised := hybrid_monitors.recognised_services(
            take_round.host, taken, known_ids, known_versions, known_standings, has_windows);
    END IF;
    IF cardinality(taken) > cardinality(recognised) THEN
        SELECT json_agg(row_to_json(v)) INTO services
        FROM (
            SELECT
                s.id, s.name, s.url, extract(epoch FROM s.every) AS every,
                extract(epoch FROM s.timeout) AS timeout, s.format,
                -- as texts, which are read one by one: an editor may have stored anything
                s.mapping::text AS mapping, s.expect::text AS expect, s.headers::text AS headers,
                s.follow, s.fail_after, s.recover_after, a.service_id IS NOT NULL AS is_asked,
                CASE WHEN has_windows OR s.depends_on IS NOT NULL OR s.quiet_until IS NOT NULL
                    THEN hybrid_monitors.why_suppressed(s.id, s.depends_on, s.labels, s.quiet_until)
                END AS suppressed,
                CASE WHEN t.is_started AND t.host = s.host THEN row_to_json(t) END AS standing,
                s.xmin::text::bigint AS version,
                -- as long as its last answer counts: else they are not those that it names
                CASE WHEN t.ok AND t.digest IS NOT NULL AND NOT t.is_unsettled THEN (
                    SELECT coalesce(json_object_agg(d.name, d.id), '{}')
                    FROM hybrid_monitors.dependencies AS d WHERE d.service_id = s.id
                ) END AS dependency_ids
            FROM unnest(taken) AS i (id)
            JOIN hybrid_monitors.services AS s ON s.id = i.id
            LEFT JOIN hybrid_monitors.standings AS t ON t.service_id = s.id
            LEFT JOIN hybrid_monitors.asked AS a ON a.service_id = s.id
            WHERE s.id <> ALL (recognised)
        ) AS v;
        services := coalesce(services, '[]'); -- somebody has deleted them
    END IF;

    IF cardinality(own.due) > take_round.most THEN
        own.next_due := looked;
    END IF;
    IF is_known THEN
        UPDATE hybrid_monitors.hosts AS h SET
            looked_at = looked, next_due_at = own.next_due, round_job = take_round.job_id,
            round_claim = take_round.claim,
            round_began_at = CASE WHEN h.round_claim = take_round.claim
                THEN h.round_began_at ELSE looked END,
            round_services = on_its_way || taken
        WHERE h.host = take_round.host;
    ELSE
        INSERT INTO hybrid_monitors.hosts (
            host, looked_at, next_due_at, round_job, round_claim, round_began_at, round_services
        ) VALUES (
            take_round.host, looked, own.next_due, take_round.job_id, take_round.claim, looked, taken
        );
    END IF;
    RETURN json_build_object(
        'now', looked, 'services', services, 'order', taken, 'recognised', recognised, 'stopped', stopped,
        'next_due', extract(epoch FROM own.next_due - looked),
        'polls_are_read', hybrid_monitors.events_are_read());
END
$$;

CREATE FUNCTION hybrid_monitors.update_service(name text, columns jsonb) RETURNS bigint
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
#variable_conflict use_column
DECLARE
    changed bigint;
    k jsonb := update_service.columns;
    c hybrid_monitors.service_columns;
BEGIN
    c := hybrid_monitors.service_columns_of(k);
    UPDATE hybrid_monitors.services AS s SET
        name = CASE WHEN k ? 'name' THEN c.name ELSE s.name END,
        url = CASE WHEN k ? 'url' THEN c.url ELSE s.url END,
        every = CASE WHEN k ? 'every' THEN c.every ELSE s.every END,
        timeout = CASE WHEN k ? 'timeout' THEN c.timeout ELSE s.timeout END,
        -- another mapping alone says what the format is
        format = CASE WHEN k ? 'format' THEN c.format WHEN k ? 'mapping' THEN NULL ELSE s.format END,
        mapping = CASE WHEN k ? 'mapping' THEN c.mapping ELSE s.mapping END,
        expect = CASE WHEN k ? 'expect' THEN c.expect ELSE s.expect END,
        headers = CASE WHEN k ? 'headers' THEN c.headers ELSE s.headers END,
        follow = CASE WHEN k ? 'follow' THEN c.follow ELSE s.follow END,
        fail_after = CASE WHEN k ? 'fail_after' THEN c.fail_after ELSE s.fail_after END,
        recover_after = CASE WHEN k ? 'recover_after' THEN c.recover_after ELSE s.recover_after END,
        depends_on = CASE WHEN k ? 'depends_on' THEN c.depends_on ELSE s.depends_on END,
        labels = CASE WHEN k ? 'labels' THEN c.labels ELSE s.labels END,
        active = CASE WHEN k ? 'active' THEN c.active ELSE s.active END,
        quiet_until = CASE WHEN k ? 'quiet_until' THEN c.quiet_until ELSE s.quiet_until END
    WHERE s.name = update_service.name
    RETURNING s.id INTO changed;
    RETURN changed;
END
$$;

CREATE FUNCTION hybrid_monitors.upkeep_ended() RETURNS timestamp with time zone
    LANGUAGE sql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
    UPDATE hybrid_monitors.upkeep_runs AS r SET ended_at = clock_timestamp() RETURNING r.ended_at
$$;

CREATE FUNCTION hybrid_monitors.wake_set_back() RETURNS integer
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
DECLARE
    woken integer;
BEGIN
    INSERT INTO hybrid_runner.signals (key)
    SELECT j.key
    FROM (
        SELECT 'monitors:' || h.host AS key FROM hybrid_monitors.hosts AS h
        WHERE h.looked_at > clock_timestamp() + interval '5 seconds'
        UNION ALL
        SELECT 'monitors.upkeep' FROM hybrid_monitors.upkeep_runs AS r
        WHERE r.ended_at > clock_timestamp() + interval '5 seconds'
    ) AS ahead
    JOIN hybrid_runner.jobs AS j ON j.key = ahead.key
    WHERE j.state = 'queued' AND j.waits_for = j.key AND j.run_at > clock_timestamp();
    GET DIAGNOSTICS woken = ROW_COUNT;
    RETURN woken;
END
$$;

CREATE FUNCTION hybrid_monitors.why_suppressed(id bigint, depends_on bigint, labels jsonb, quiet_until timestamp with time zone) RETURNS text
    LANGUAGE plpgsql STABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
#variable_conflict use_column
DECLARE
    parent bigint := why_suppressed.depends_on;
    its_parent bigint;
    is_down boolean;
BEGIN
    IF why_suppressed.quiet_until > now() OR EXISTS (
        SELECT FROM hybrid_monitors.windows AS w
        WHERE (w.service_id = why_suppressed.id OR why_suppressed.labels @> w.label)
            AND hybrid_monitors.is_window_open(w.begins, w.ends, w.every, now())
    ) THEN
        RETURN 'maintenance';
    END IF;
    FOR link IN 1..10 LOOP
        EXIT WHEN parent IS NULL;
        SELECT s.depends_on, t.is_down INTO its_parent, is_down
        FROM hybrid_monitors.services AS s
        LEFT JOIN hybrid_monitors.standings AS t ON t.service_id = s.id
        WHERE s.id = parent AND s.active;
        EXIT WHEN NOT FOUND;
        IF is_down THEN
            RETURN 'parent';
        END IF;
        parent := its_parent;
    END LOOP;
    RETURN NULL;
END
$$;

CREATE TABLE hybrid_monitors.aliases (
    alias text NOT NULL,
    canonical_name text NOT NULL
);

CREATE TABLE hybrid_monitors.asked (
    service_id bigint NOT NULL,
    asked_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    asked_by text DEFAULT SESSION_USER NOT NULL
);

CREATE TABLE hybrid_monitors.dependencies (
    id bigint NOT NULL,
    service_id bigint NOT NULL,
    name text NOT NULL COLLATE pg_catalog."C",
    canonical_name text NOT NULL,
    type text DEFAULT 'other'::text NOT NULL,
    description text,
    impact text,
    healthy boolean NOT NULL,
    state smallint DEFAULT 0 NOT NULL,
    code integer DEFAULT 200 NOT NULL,
    latency_ms integer DEFAULT 0 NOT NULL,
    skipped boolean DEFAULT false NOT NULL,
    contact jsonb,
    check_details jsonb,
    error jsonb,
    error_message text,
    last_checked timestamp with time zone NOT NULL,
    last_status_change timestamp with time zone,
    contrary smallint DEFAULT 0 NOT NULL,
    told boolean DEFAULT true NOT NULL,
    missing smallint DEFAULT 0 NOT NULL,
    last_error jsonb,
    first_seen_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    changed_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL
)
WITH (fillfactor='80');

ALTER TABLE hybrid_monitors.dependencies ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME hybrid_monitors.dependencies_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE hybrid_monitors.errors (
    at timestamp with time zone NOT NULL,
    service_id bigint NOT NULL,
    dependency_id bigint,
    error jsonb,
    message text
)
PARTITION BY RANGE (at);

CREATE TABLE hybrid_monitors.errors_default (
    at timestamp with time zone CONSTRAINT errors_at_not_null NOT NULL,
    service_id bigint CONSTRAINT errors_service_id_not_null NOT NULL,
    dependency_id bigint,
    error jsonb,
    message text
);

CREATE TABLE hybrid_monitors.event_numbers (
    is_one boolean DEFAULT true NOT NULL,
    last bigint DEFAULT 0 NOT NULL,
    CONSTRAINT event_numbers_is_one_check CHECK (is_one)
)
WITH (fillfactor='10');

CREATE SEQUENCE hybrid_monitors.event_readers_until
    START WITH 0
    INCREMENT BY 1
    MINVALUE 0
    NO MAXVALUE
    CACHE 1;

CREATE TABLE hybrid_monitors.events (
    id bigint NOT NULL,
    at timestamp with time zone NOT NULL,
    kind text NOT NULL,
    service_id bigint NOT NULL,
    payload jsonb NOT NULL,
    suppressed text
)
PARTITION BY RANGE (at);

CREATE TABLE hybrid_monitors.events_default (
    id bigint CONSTRAINT events_id_not_null NOT NULL,
    at timestamp with time zone CONSTRAINT events_at_not_null NOT NULL,
    kind text CONSTRAINT events_kind_not_null NOT NULL,
    service_id bigint CONSTRAINT events_service_id_not_null NOT NULL,
    payload jsonb CONSTRAINT events_payload_not_null NOT NULL,
    suppressed text
);

CREATE TABLE hybrid_monitors.hosts (
    host text NOT NULL COLLATE pg_catalog."C",
    looked_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    next_due_at timestamp with time zone,
    round_job bigint,
    round_claim bigint,
    round_began_at timestamp with time zone,
    round_services bigint[] DEFAULT '{}'::bigint[] NOT NULL
)
WITH (fillfactor='50', autovacuum_vacuum_scale_factor='1', autovacuum_vacuum_threshold='1000', autovacuum_analyze_scale_factor='20');

CREATE TABLE hybrid_monitors.hours (
    hour timestamp with time zone NOT NULL,
    dependency_id bigint NOT NULL,
    answers integer NOT NULL,
    sum_ms bigint NOT NULL,
    max_ms integer NOT NULL,
    buckets integer[] NOT NULL
)
PARTITION BY RANGE (hour);

CREATE TABLE hybrid_monitors.hours_default (
    hour timestamp with time zone CONSTRAINT hours_hour_not_null NOT NULL,
    dependency_id bigint CONSTRAINT hours_dependency_id_not_null NOT NULL,
    answers integer CONSTRAINT hours_answers_not_null NOT NULL,
    sum_ms bigint CONSTRAINT hours_sum_ms_not_null NOT NULL,
    max_ms integer CONSTRAINT hours_max_ms_not_null NOT NULL,
    buckets integer[] CONSTRAINT hours_buckets_not_null NOT NULL
);

CREATE TABLE hybrid_monitors.latencies (
    at timestamp with time zone NOT NULL,
    host text NOT NULL COLLATE pg_catalog."C",
    dependency_ids bigint[] NOT NULL,
    milliseconds integer[] NOT NULL
)
PARTITION BY RANGE (at);

CREATE TABLE hybrid_monitors.latencies_default (
    at timestamp with time zone CONSTRAINT latencies_at_not_null NOT NULL,
    host text CONSTRAINT latencies_host_not_null NOT NULL COLLATE pg_catalog."C",
    dependency_ids bigint[] CONSTRAINT latencies_dependency_ids_not_null NOT NULL,
    milliseconds integer[] CONSTRAINT latencies_milliseconds_not_null NOT NULL
);

CREATE VIEW hybrid_monitors.latency_history AS
 SELECT u.dependency_id,
    l.at,
    u.ms
   FROM (hybrid_monitors.latencies l
     CROSS JOIN LATERAL UNNEST(l.dependency_ids, l.milliseconds) u(dependency_id, ms));

CREATE TABLE hybrid_monitors.services (
    id bigint NOT NULL,
    name text NOT NULL,
    url text NOT NULL,
    host text GENERATED ALWAYS AS (lower((COALESCE("substring"(url, '^[^:/?#]*://(?:[^/?#@]*@)?(\[[^\]]*\]|[^]:/?#[]*)'::text), ''::text) COLLATE "C"))) STORED NOT NULL COLLATE pg_catalog."C",
    every interval DEFAULT '00:00:30'::interval NOT NULL,
    timeout interval DEFAULT '00:00:10'::interval NOT NULL,
    format text NOT NULL,
    mapping jsonb,
    expect jsonb,
    headers jsonb,
    follow integer DEFAULT 0 NOT NULL,
    fail_after integer DEFAULT 1 NOT NULL,
    recover_after integer DEFAULT 1 NOT NULL,
    depends_on bigint,
    labels jsonb DEFAULT '{}'::jsonb NOT NULL,
    active boolean DEFAULT true NOT NULL,
    quiet_until timestamp with time zone,
    created_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL
);

CREATE TABLE hybrid_monitors.windows (
    id bigint NOT NULL,
    service_id bigint,
    label jsonb,
    begins timestamp with time zone NOT NULL,
    ends timestamp with time zone NOT NULL,
    every interval,
    reason text
);

CREATE VIEW hybrid_monitors.maintained AS
 WITH open_windows AS MATERIALIZED (
         SELECT DISTINCT w.service_id,
            w.label
           FROM hybrid_monitors.windows w
          WHERE hybrid_monitors.is_window_open(w.begins, w.ends, w.every, now())
        ), rarest AS MATERIALIZED (
         SELECT DISTINCT ON (p.label) p.label,
            p.key,
            p.value
           FROM ( SELECT o.label,
                    e.key,
                    e.value,
                    count(*) OVER (PARTITION BY e.key, e.value) AS windows
                   FROM (open_windows o
                     CROSS JOIN LATERAL jsonb_each(o.label) e(key, value))) p
          ORDER BY p.label, p.windows, p.key
        )
 SELECT s.id AS service_id
   FROM hybrid_monitors.services s
  WHERE ((s.quiet_until > now()) OR (s.id IN ( SELECT o.service_id
           FROM open_windows o)) OR (EXISTS ( SELECT
           FROM open_windows o
          WHERE (o.label = '{}'::jsonb))))
UNION
 SELECT p.id AS service_id
   FROM (( SELECT l.id,
            l.labels,
            e.key,
            e.value
           FROM (( SELECT s.id,
                    (s.labels || '{}'::jsonb) AS labels
                   FROM hybrid_monitors.services s
                 OFFSET 0) l
             CROSS JOIN LATERAL jsonb_each(l.labels) e(key, value))
         OFFSET 0) p
     JOIN rarest r ON (((r.key = p.key) AND (r.value = p.value))))
  WHERE ((p.labels @> r.label) AND (EXISTS ( SELECT
           FROM rarest)));

CREATE TABLE hybrid_monitors.migrations (
    version integer NOT NULL,
    name text NOT NULL,
    checksum text NOT NULL,
    applied_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL
);

CREATE VIEW hybrid_monitors.overview AS
 SELECT s.id,
    s.name,
    s.host,
        CASE
            WHEN (NOT s.active) THEN 'paused'::text
            WHEN (s.id IN ( SELECT m.service_id
               FROM hybrid_monitors.maintained m)) THEN 'maintenance'::text
            WHEN (st.polled_at IS NULL) THEN 'unknown'::text
            WHEN st.is_down THEN 'down'::text
            ELSE 'up'::text
        END AS state,
    st.since,
    st.failure,
    st.error,
    COALESCE(st.breaker, 'closed'::text) AS breaker,
    COALESCE(st.failures, 0) AS failures,
    st.latency_ms,
    st.polled_at,
        CASE
            WHEN s.active THEN st.due_at
            ELSE NULL::timestamp with time zone
        END AS due_at,
    COALESCE(st.warnings, '[]'::jsonb) AS warnings,
    s.labels
   FROM (hybrid_monitors.services s
     LEFT JOIN hybrid_monitors.standings st ON ((st.service_id = s.id)));

CREATE TABLE hybrid_monitors.retention (
    what text NOT NULL,
    keep interval NOT NULL,
    unit text NOT NULL,
    CONSTRAINT retention_keep_is_an_hour_to_ten_years CHECK (((keep >= '01:00:00'::interval) AND (keep <= '3653 days'::interval) AND (EXTRACT(year FROM keep) = (0)::numeric) AND (EXTRACT(month FROM keep) = (0)::numeric) AND ((EXTRACT(day FROM keep) >= (0)::numeric) AND (EXTRACT(day FROM keep) <= (3653)::numeric)))),
    CONSTRAINT retention_unit_is_known CHECK ((unit = ANY (ARRAY['day'::text, 'month'::text])))
);

CREATE VIEW hybrid_monitors.partitions AS
 SELECT r.what,
    (part.relname)::text AS partition,
    (bound.text = 'DEFAULT'::text) AS is_default,
    ("substring"(bound.text, 'FROM \(''([^'']+)''\)'::text))::timestamp with time zone AS lower,
    ("substring"(bound.text, 'TO \(''([^'']+)''\)'::text))::timestamp with time zone AS upper
   FROM ((((hybrid_monitors.retention r
     JOIN pg_class whole ON (((whole.relname = r.what) AND (whole.relnamespace = ( SELECT n.oid
           FROM pg_namespace n
          WHERE (n.nspname = 'hybrid_monitors'::name))))))
     JOIN pg_inherits i ON ((i.inhparent = whole.oid)))
     JOIN pg_class part ON (((part.oid = i.inhrelid) AND (part.relnamespace = whole.relnamespace))))
     CROSS JOIN LATERAL pg_get_expr(part.relpartbound, part.oid) bound(text));

ALTER TABLE hybrid_monitors.services ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME hybrid_monitors.services_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE hybrid_monitors.upkeep_runs (
    one boolean DEFAULT true NOT NULL,
    rolled_up_until timestamp with time zone,
    ended_at timestamp with time zone,
    CONSTRAINT upkeep_runs_one_check CHECK (one)
);

ALTER TABLE hybrid_monitors.windows ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME hybrid_monitors.windows_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

ALTER TABLE ONLY hybrid_monitors.errors ATTACH PARTITION hybrid_monitors.errors_default DEFAULT;

ALTER TABLE ONLY hybrid_monitors.events ATTACH PARTITION hybrid_monitors.events_default DEFAULT;

ALTER TABLE ONLY hybrid_monitors.hours ATTACH PARTITION hybrid_monitors.hours_default DEFAULT;

ALTER TABLE ONLY hybrid_monitors.latencies ATTACH PARTITION hybrid_monitors.latencies_default DEFAULT;

ALTER TABLE ONLY hybrid_monitors.aliases
    ADD CONSTRAINT aliases_pkey PRIMARY KEY (alias);

ALTER TABLE ONLY hybrid_monitors.asked
    ADD CONSTRAINT asked_pkey PRIMARY KEY (service_id);

ALTER TABLE ONLY hybrid_monitors.dependencies
    ADD CONSTRAINT dependencies_pkey PRIMARY KEY (id);

ALTER TABLE ONLY hybrid_monitors.event_numbers
    ADD CONSTRAINT event_numbers_pkey PRIMARY KEY (is_one);

ALTER TABLE ONLY hybrid_monitors.events
    ADD CONSTRAINT events_pkey PRIMARY KEY (id, at);

ALTER TABLE ONLY hybrid_monitors.events_default
    ADD CONSTRAINT events_default_pkey PRIMARY KEY (id, at);

ALTER TABLE ONLY hybrid_monitors.hosts
    ADD CONSTRAINT hosts_pkey PRIMARY KEY (host);

ALTER TABLE ONLY hybrid_monitors.hours
    ADD CONSTRAINT hours_pkey PRIMARY KEY (dependency_id, hour);

ALTER TABLE ONLY hybrid_monitors.hours_default
    ADD CONSTRAINT hours_default_pkey PRIMARY KEY (dependency_id, hour);

ALTER TABLE ONLY hybrid_monitors.migrations
    ADD CONSTRAINT migrations_pkey PRIMARY KEY (version);

ALTER TABLE ONLY hybrid_monitors.retention
    ADD CONSTRAINT retention_pkey PRIMARY KEY (what);

ALTER TABLE ONLY hybrid_monitors.services
    ADD CONSTRAINT services_one_per_name UNIQUE (name);

ALTER TABLE ONLY hybrid_monitors.services
    ADD CONSTRAINT services_pkey PRIMARY KEY (id);

ALTER TABLE ONLY hybrid_monitors.standings
    ADD CONSTRAINT standings_pkey PRIMARY KEY (service_id);

ALTER TABLE ONLY hybrid_monitors.upkeep_runs
    ADD CONSTRAINT upkeep_runs_pkey PRIMARY KEY (one);

ALTER TABLE ONLY hybrid_monitors.windows
    ADD CONSTRAINT windows_pkey PRIMARY KEY (id);

CREATE INDEX dependencies_by_canonical_name ON hybrid_monitors.dependencies USING btree (canonical_name);

CREATE UNIQUE INDEX dependencies_one_per_service_and_name ON hybrid_monitors.dependencies USING btree (service_id, name) INCLUDE (id);

CREATE INDEX errors_by_dependency ON ONLY hybrid_monitors.errors USING btree (dependency_id, at) WHERE (dependency_id IS NOT NULL);

CREATE INDEX errors_by_service ON ONLY hybrid_monitors.errors USING btree (service_id, at) WHERE (dependency_id IS NULL);

CREATE INDEX errors_default_dependency_id_at_idx ON hybrid_monitors.errors_default USING btree (dependency_id, at) WHERE (dependency_id IS NOT NULL);

CREATE INDEX errors_default_service_id_at_idx ON hybrid_monitors.errors_default USING btree (service_id, at) WHERE (dependency_id IS NULL);

CREATE INDEX events_by_service ON ONLY hybrid_monitors.events USING btree (service_id, id);

CREATE INDEX events_default_service_id_id_idx ON hybrid_monitors.events_default USING btree (service_id, id);

CREATE INDEX latencies_by_age ON ONLY hybrid_monitors.latencies USING btree (at);

CREATE INDEX latencies_by_host ON ONLY hybrid_monitors.latencies USING btree (host, at);

CREATE INDEX latencies_default_at_idx ON hybrid_monitors.latencies_default USING btree (at);

CREATE INDEX latencies_default_host_at_idx ON hybrid_monitors.latencies_default USING btree (host, at);

CREATE INDEX services_by_host ON hybrid_monitors.services USING btree (host) WHERE active;

CREATE INDEX services_by_parent ON hybrid_monitors.services USING btree (depends_on) WHERE (depends_on IS NOT NULL);

CREATE INDEX standings_by_host ON hybrid_monitors.standings USING btree (host);

ALTER INDEX hybrid_monitors.errors_by_dependency ATTACH PARTITION hybrid_monitors.errors_default_dependency_id_at_idx;

ALTER INDEX hybrid_monitors.errors_by_service ATTACH PARTITION hybrid_monitors.errors_default_service_id_at_idx;

ALTER INDEX hybrid_monitors.events_pkey ATTACH PARTITION hybrid_monitors.events_default_pkey;

ALTER INDEX hybrid_monitors.events_by_service ATTACH PARTITION hybrid_monitors.events_default_service_id_id_idx;

ALTER INDEX hybrid_monitors.hours_pkey ATTACH PARTITION hybrid_monitors.hours_default_pkey;

ALTER INDEX hybrid_monitors.latencies_by_age ATTACH PARTITION hybrid_monitors.latencies_default_at_idx;

ALTER INDEX hybrid_monitors.latencies_by_host ATTACH PARTITION hybrid_monitors.latencies_default_host_at_idx;

CREATE TRIGGER check_alias BEFORE INSERT OR UPDATE ON hybrid_monitors.aliases FOR EACH ROW EXECUTE FUNCTION hybrid_monitors.check_alias();

CREATE TRIGGER check_service BEFORE INSERT OR UPDATE ON hybrid_monitors.services FOR EACH ROW EXECUTE FUNCTION hybrid_monitors.check_service();

CREATE TRIGGER check_window BEFORE INSERT OR UPDATE ON hybrid_monitors.windows FOR EACH ROW EXECUTE FUNCTION hybrid_monitors.check_window();

CREATE TRIGGER services_deleted AFTER DELETE ON hybrid_monitors.services REFERENCING OLD TABLE AS deleted FOR EACH STATEMENT EXECUTE FUNCTION hybrid_monitors.services_deleted();

CREATE TRIGGER services_inserted AFTER INSERT ON hybrid_monitors.services REFERENCING NEW TABLE AS inserted FOR EACH STATEMENT EXECUTE FUNCTION hybrid_monitors.services_inserted();

CREATE TRIGGER services_truncated AFTER TRUNCATE ON hybrid_monitors.services FOR EACH STATEMENT EXECUTE FUNCTION hybrid_monitors.services_truncated();

CREATE TRIGGER services_updated AFTER UPDATE ON hybrid_monitors.services REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION hybrid_monitors.services_updated();

GRANT USAGE ON SCHEMA hybrid_monitors TO hybrid_monitors_editor;

GRANT USAGE ON SCHEMA hybrid_monitors TO hybrid_runner_worker;

GRANT USAGE ON SCHEMA hybrid_monitors TO hybrid_runner_reader;

REVOKE ALL ON FUNCTION hybrid_monitors.add_partition(what text, opens timestamp with time zone, closes timestamp with time zone) FROM PUBLIC;

REVOKE ALL ON FUNCTION hybrid_monitors.add_service(columns jsonb) FROM PUBLIC;

GRANT ALL ON FUNCTION hybrid_monitors.add_service(columns jsonb) TO hybrid_monitors_editor;

REVOKE ALL ON FUNCTION hybrid_monitors.ask_poll(name text) FROM PUBLIC;

GRANT ALL ON FUNCTION hybrid_monitors.ask_poll(name text) TO hybrid_monitors_editor;

GRANT ALL ON FUNCTION hybrid_monitors.ask_poll(name text) TO hybrid_runner_worker;

REVOKE ALL ON FUNCTION hybrid_monitors.begin_probes(job_id bigint, claim bigint, service_ids bigint[], until timestamp with time zone) FROM PUBLIC;

GRANT ALL ON FUNCTION hybrid_monitors.begin_probes(job_id bigint, claim bigint, service_ids bigint[], until timestamp with time zone) TO hybrid_runner_worker;

REVOKE ALL ON FUNCTION hybrid_monitors.check_alias() FROM PUBLIC;

REVOKE ALL ON FUNCTION hybrid_monitors.check_service() FROM PUBLIC;

REVOKE ALL ON FUNCTION hybrid_monitors.check_window() FROM PUBLIC;

REVOKE ALL ON FUNCTION hybrid_monitors.close_host(host text) FROM PUBLIC;

GRANT ALL ON FUNCTION hybrid_monitors.close_host(host text) TO hybrid_runner_worker;

REVOKE ALL ON FUNCTION hybrid_monitors.drop_partitions(most integer) FROM PUBLIC;

GRANT ALL ON FUNCTION hybrid_monitors.drop_partitions(most integer) TO hybrid_runner_worker;

REVOKE ALL ON FUNCTION hybrid_monitors.events_are_read() FROM PUBLIC;

GRANT ALL ON FUNCTION hybrid_monitors.events_are_read() TO hybrid_runner_worker;

REVOKE ALL ON FUNCTION hybrid_monitors.forget_leftovers(most integer) FROM PUBLIC;

GRANT ALL ON FUNCTION hybrid_monitors.forget_leftovers(most integer) TO hybrid_runner_worker;

REVOKE ALL ON FUNCTION hybrid_monitors.forget_strays(most integer) FROM PUBLIC;

REVOKE ALL ON FUNCTION hybrid_monitors.is_window_open(begins timestamp with time zone, ends timestamp with time zone, every interval, at timestamp with time zone) FROM PUBLIC;

GRANT ALL ON FUNCTION hybrid_monitors.is_window_open(begins timestamp with time zone, ends timestamp with time zone, every interval, at timestamp with time zone) TO hybrid_monitors_editor;

GRANT ALL ON FUNCTION hybrid_monitors.is_window_open(begins timestamp with time zone, ends timestamp with time zone, every interval, at timestamp with time zone) TO hybrid_runner_reader;

GRANT ALL ON FUNCTION hybrid_monitors.is_window_open(begins timestamp with time zone, ends timestamp with time zone, every interval, at timestamp with time zone) TO hybrid_runner_worker;

REVOKE ALL ON FUNCTION hybrid_monitors.latency_bounds() FROM PUBLIC;

GRANT ALL ON FUNCTION hybrid_monitors.latency_bounds() TO hybrid_monitors_editor;

GRANT ALL ON FUNCTION hybrid_monitors.latency_bounds() TO hybrid_runner_reader;

GRANT ALL ON FUNCTION hybrid_monitors.latency_bounds() TO hybrid_runner_worker;

REVOKE ALL ON FUNCTION hybrid_monitors.make_partitions(days_ahead integer) FROM PUBLIC;

GRANT ALL ON FUNCTION hybrid_monitors.make_partitions(days_ahead integer) TO hybrid_runner_worker;

REVOKE ALL ON FUNCTION hybrid_monitors.mend_set_back(host text, place double precision, looked timestamp with time zone) FROM PUBLIC;

REVOKE ALL ON FUNCTION hybrid_monitors.moment_of(id bigint, every interval, place double precision, looked timestamp with time zone) FROM PUBLIC;

REVOKE ALL ON FUNCTION hybrid_monitors.open_hosts(hosts text[]) FROM PUBLIC;

GRANT ALL ON FUNCTION hybrid_monitors.open_hosts(hosts text[]) TO hybrid_runner_worker;

REVOKE ALL ON FUNCTION hybrid_monitors.phase_of(id bigint) FROM PUBLIC;

REVOKE ALL ON FUNCTION hybrid_monitors.recognised_services(host text, taken bigint[], known_ids bigint[], known_versions xid[], known_standings xid[], has_windows boolean) FROM PUBLIC;

REVOKE ALL ON FUNCTION hybrid_monitors.record_round(host text, job_id bigint, claim bigint, round jsonb, latency_services bigint[], latency_names text[], latencies integer[], last boolean, same_ids bigint[], same_dues timestamp with time zone[], same_polls timestamp with time zone[], same_latencies integer[], told_services bigint[], told_dependencies bigint[], told_latencies integer[]) FROM PUBLIC;

GRANT ALL ON FUNCTION hybrid_monitors.record_round(host text, job_id bigint, claim bigint, round jsonb, latency_services bigint[], latency_names text[], latencies integer[], last boolean, same_ids bigint[], same_dues timestamp with time zone[], same_polls timestamp with time zone[], same_latencies integer[], told_services bigint[], told_dependencies bigint[], told_latencies integer[]) TO hybrid_runner_worker;

REVOKE ALL ON FUNCTION hybrid_monitors.refusal_of_interval(place text, value interval, lowest interval, highest interval, words text) FROM PUBLIC;

REVOKE ALL ON FUNCTION hybrid_monitors.refusal_of_label(place text, value jsonb) FROM PUBLIC;

REVOKE ALL ON FUNCTION hybrid_monitors.refusal_of_name(place text, name text) FROM PUBLIC;

REVOKE ALL ON FUNCTION hybrid_monitors.refusal_of_parent(id bigint, parent bigint) FROM PUBLIC;

REVOKE ALL ON FUNCTION hybrid_monitors.refusal_of_url(url text) FROM PUBLIC;

REVOKE ALL ON FUNCTION hybrid_monitors.rename_dependencies(most integer) FROM PUBLIC;

GRANT ALL ON FUNCTION hybrid_monitors.rename_dependencies(most integer) TO hybrid_runner_worker;

REVOKE ALL ON FUNCTION hybrid_monitors.roll_up_hour() FROM PUBLIC;

GRANT ALL ON FUNCTION hybrid_monitors.roll_up_hour() TO hybrid_runner_worker;

REVOKE ALL ON FUNCTION hybrid_monitors.service_columns_of(columns jsonb) FROM PUBLIC;

GRANT ALL ON FUNCTION hybrid_monitors.service_columns_of(columns jsonb) TO hybrid_monitors_editor;

REVOKE ALL ON FUNCTION hybrid_monitors.services_changed(hosts text[], are_opened boolean) FROM PUBLIC;

REVOKE ALL ON FUNCTION hybrid_monitors.services_deleted() FROM PUBLIC;

REVOKE ALL ON FUNCTION hybrid_monitors.services_inserted() FROM PUBLIC;

REVOKE ALL ON FUNCTION hybrid_monitors.services_truncated() FROM PUBLIC;

REVOKE ALL ON FUNCTION hybrid_monitors.services_updated() FROM PUBLIC;

REVOKE ALL ON FUNCTION hybrid_monitors.spread_services(host text, place double precision, last_look timestamp with time zone, looked timestamp with time zone) FROM PUBLIC;

REVOKE ALL ON FUNCTION hybrid_monitors.stopped_services(host text, taken bigint[]) FROM PUBLIC;

REVOKE ALL ON FUNCTION hybrid_monitors.store_dependencies(kept bigint[], round jsonb, now timestamp with time zone) FROM PUBLIC;

REVOKE ALL ON FUNCTION hybrid_monitors.store_events(kept bigint[], stopped bigint[], round jsonb) FROM PUBLIC;

REVOKE ALL ON FUNCTION hybrid_monitors.store_latencies(host text, kept bigint[], services bigint[], names text[], latencies integer[], now timestamp with time zone) FROM PUBLIC;

REVOKE ALL ON FUNCTION hybrid_monitors.store_rounds(hosts text[]) FROM PUBLIC;

REVOKE ALL ON FUNCTION hybrid_monitors.store_same(host text, ids bigint[], dues timestamp with time zone[], polls timestamp with time zone[], latencies integer[], told_services bigint[], told_dependencies bigint[], told_latencies integer[], now timestamp with time zone, OUT written bigint[], OUT first_due timestamp with time zone) FROM PUBLIC;

GRANT SELECT ON TABLE hybrid_monitors.standings TO hybrid_monitors_editor;

GRANT SELECT ON TABLE hybrid_monitors.standings TO hybrid_runner_worker;

GRANT SELECT ON TABLE hybrid_monitors.standings TO hybrid_runner_reader;

REVOKE ALL ON FUNCTION hybrid_monitors.store_standings(host text, decided hybrid_monitors.standings[]) FROM PUBLIC;

REVOKE ALL ON FUNCTION hybrid_monitors.survey_host(host text, on_its_way bigint[], last_look timestamp with time zone, looked timestamp with time zone, OUT due bigint[], OUT next_due timestamp with time zone, OUT new integer, OUT here integer, OUT is_late boolean) FROM PUBLIC;

REVOKE ALL ON FUNCTION hybrid_monitors.take_round(host text, job_id bigint, claim bigint, most integer, known_ids bigint[], known_versions xid[], known_standings xid[]) FROM PUBLIC;

GRANT ALL ON FUNCTION hybrid_monitors.take_round(host text, job_id bigint, claim bigint, most integer, known_ids bigint[], known_versions xid[], known_standings xid[]) TO hybrid_runner_worker;

REVOKE ALL ON FUNCTION hybrid_monitors.update_service(name text, columns jsonb) FROM PUBLIC;

GRANT ALL ON FUNCTION hybrid_monitors.update_service(name text, columns jsonb) TO hybrid_monitors_editor;

REVOKE ALL ON FUNCTION hybrid_monitors.upkeep_ended() FROM PUBLIC;

GRANT ALL ON FUNCTION hybrid_monitors.upkeep_ended() TO hybrid_runner_worker;

REVOKE ALL ON FUNCTION hybrid_monitors.wake_set_back() FROM PUBLIC;

GRANT ALL ON FUNCTION hybrid_monitors.wake_set_back() TO hybrid_runner_worker;

REVOKE ALL ON FUNCTION hybrid_monitors.why_suppressed(id bigint, depends_on bigint, labels jsonb, quiet_until timestamp with time zone) FROM PUBLIC;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE hybrid_monitors.aliases TO hybrid_monitors_editor;

GRANT SELECT ON TABLE hybrid_monitors.aliases TO hybrid_runner_worker;

GRANT SELECT ON TABLE hybrid_monitors.aliases TO hybrid_runner_reader;

GRANT SELECT ON TABLE hybrid_monitors.asked TO hybrid_monitors_editor;

GRANT SELECT ON TABLE hybrid_monitors.asked TO hybrid_runner_worker;

GRANT SELECT ON TABLE hybrid_monitors.asked TO hybrid_runner_reader;

GRANT SELECT ON TABLE hybrid_monitors.dependencies TO hybrid_monitors_editor;

GRANT SELECT ON TABLE hybrid_monitors.dependencies TO hybrid_runner_worker;

GRANT SELECT ON TABLE hybrid_monitors.dependencies TO hybrid_runner_reader;

GRANT SELECT ON SEQUENCE hybrid_monitors.dependencies_id_seq TO hybrid_monitors_editor;

GRANT SELECT ON SEQUENCE hybrid_monitors.dependencies_id_seq TO hybrid_runner_worker;

GRANT SELECT ON SEQUENCE hybrid_monitors.dependencies_id_seq TO hybrid_runner_reader;

GRANT SELECT ON TABLE hybrid_monitors.errors TO hybrid_monitors_editor;

GRANT SELECT ON TABLE hybrid_monitors.errors TO hybrid_runner_worker;

GRANT SELECT ON TABLE hybrid_monitors.errors TO hybrid_runner_reader;

GRANT SELECT ON TABLE hybrid_monitors.errors_default TO hybrid_monitors_editor;

GRANT SELECT ON TABLE hybrid_monitors.errors_default TO hybrid_runner_worker;

GRANT SELECT ON TABLE hybrid_monitors.errors_default TO hybrid_runner_reader;

GRANT SELECT ON TABLE hybrid_monitors.event_numbers TO hybrid_monitors_editor;

GRANT SELECT ON TABLE hybrid_monitors.event_numbers TO hybrid_runner_worker;

GRANT SELECT ON TABLE hybrid_monitors.event_numbers TO hybrid_runner_reader;

GRANT SELECT ON SEQUENCE hybrid_monitors.event_readers_until TO hybrid_monitors_editor;

GRANT SELECT,UPDATE ON SEQUENCE hybrid_monitors.event_readers_until TO hybrid_runner_worker;

GRANT SELECT ON SEQUENCE hybrid_monitors.event_readers_until TO hybrid_runner_reader;

GRANT SELECT ON TABLE hybrid_monitors.events TO hybrid_monitors_editor;

GRANT SELECT ON TABLE hybrid_monitors.events TO hybrid_runner_worker;

GRANT SELECT ON TABLE hybrid_monitors.events TO hybrid_runner_reader;

GRANT SELECT ON TABLE hybrid_monitors.events_default TO hybrid_monitors_editor;

GRANT SELECT ON TABLE hybrid_monitors.events_default TO hybrid_runner_worker;

GRANT SELECT ON TABLE hybrid_monitors.events_default TO hybrid_runner_reader;

GRANT SELECT ON TABLE hybrid_monitors.hosts TO hybrid_monitors_editor;

GRANT SELECT ON TABLE hybrid_monitors.hosts TO hybrid_runner_worker;

GRANT SELECT ON TABLE hybrid_monitors.hosts TO hybrid_runner_reader;

GRANT SELECT ON TABLE hybrid_monitors.hours TO hybrid_monitors_editor;

GRANT SELECT ON TABLE hybrid_monitors.hours TO hybrid_runner_worker;

GRANT SELECT ON TABLE hybrid_monitors.hours TO hybrid_runner_reader;

GRANT SELECT ON TABLE hybrid_monitors.hours_default TO hybrid_monitors_editor;

GRANT SELECT ON TABLE hybrid_monitors.hours_default TO hybrid_runner_worker;

GRANT SELECT ON TABLE hybrid_monitors.hours_default TO hybrid_runner_reader;

GRANT SELECT ON TABLE hybrid_monitors.latencies TO hybrid_monitors_editor;

GRANT SELECT ON TABLE hybrid_monitors.latencies TO hybrid_runner_worker;

GRANT SELECT ON TABLE hybrid_monitors.latencies TO hybrid_runner_reader;

GRANT SELECT ON TABLE hybrid_monitors.latencies_default TO hybrid_monitors_editor;

GRANT SELECT ON TABLE hybrid_monitors.latencies_default TO hybrid_runner_worker;

GRANT SELECT ON TABLE hybrid_monitors.latencies_default TO hybrid_runner_reader;

GRANT SELECT ON TABLE hybrid_monitors.latency_history TO hybrid_monitors_editor;

GRANT SELECT ON TABLE hybrid_monitors.latency_history TO hybrid_runner_worker;

GRANT SELECT ON TABLE hybrid_monitors.latency_history TO hybrid_runner_reader;

GRANT SELECT,DELETE ON TABLE hybrid_monitors.services TO hybrid_monitors_editor;

GRANT SELECT ON TABLE hybrid_monitors.services TO hybrid_runner_worker;

GRANT SELECT ON TABLE hybrid_monitors.services TO hybrid_runner_reader;

GRANT INSERT(name),UPDATE(name) ON TABLE hybrid_monitors.services TO hybrid_monitors_editor;

GRANT INSERT(url),UPDATE(url) ON TABLE hybrid_monitors.services TO hybrid_monitors_editor;

GRANT INSERT(every),UPDATE(every) ON TABLE hybrid_monitors.services TO hybrid_monitors_editor;

GRANT INSERT(timeout),UPDATE(timeout) ON TABLE hybrid_monitors.services TO hybrid_monitors_editor;

GRANT INSERT(format),UPDATE(format) ON TABLE hybrid_monitors.services TO hybrid_monitors_editor;

GRANT INSERT(mapping),UPDATE(mapping) ON TABLE hybrid_monitors.services TO hybrid_monitors_editor;

GRANT INSERT(expect),UPDATE(expect) ON TABLE hybrid_monitors.services TO hybrid_monitors_editor;

GRANT INSERT(headers),UPDATE(headers) ON TABLE hybrid_monitors.services TO hybrid_monitors_editor;

GRANT INSERT(follow),UPDATE(follow) ON TABLE hybrid_monitors.services TO hybrid_monitors_editor;

GRANT INSERT(fail_after),UPDATE(fail_after) ON TABLE hybrid_monitors.services TO hybrid_monitors_editor;

GRANT INSERT(recover_after),UPDATE(recover_after) ON TABLE hybrid_monitors.services TO hybrid_monitors_editor;

GRANT INSERT(depends_on),UPDATE(depends_on) ON TABLE hybrid_monitors.services TO hybrid_monitors_editor;

GRANT INSERT(labels),UPDATE(labels) ON TABLE hybrid_monitors.services TO hybrid_monitors_editor;

GRANT INSERT(active),UPDATE(active) ON TABLE hybrid_monitors.services TO hybrid_monitors_editor;

GRANT INSERT(quiet_until),UPDATE(quiet_until) ON TABLE hybrid_monitors.services TO hybrid_monitors_editor;

GRANT SELECT,DELETE ON TABLE hybrid_monitors.windows TO hybrid_monitors_editor;

GRANT SELECT ON TABLE hybrid_monitors.windows TO hybrid_runner_worker;

GRANT SELECT ON TABLE hybrid_monitors.windows TO hybrid_runner_reader;

GRANT INSERT(service_id),UPDATE(service_id) ON TABLE hybrid_monitors.windows TO hybrid_monitors_editor;

GRANT INSERT(label),UPDATE(label) ON TABLE hybrid_monitors.windows TO hybrid_monitors_editor;

GRANT INSERT(begins),UPDATE(begins) ON TABLE hybrid_monitors.windows TO hybrid_monitors_editor;

GRANT INSERT(ends),UPDATE(ends) ON TABLE hybrid_monitors.windows TO hybrid_monitors_editor;

GRANT INSERT(every),UPDATE(every) ON TABLE hybrid_monitors.windows TO hybrid_monitors_editor;

GRANT INSERT(reason),UPDATE(reason) ON TABLE hybrid_monitors.windows TO hybrid_monitors_editor;

GRANT SELECT ON TABLE hybrid_monitors.maintained TO hybrid_monitors_editor;

GRANT SELECT ON TABLE hybrid_monitors.maintained TO hybrid_runner_worker;

GRANT SELECT ON TABLE hybrid_monitors.maintained TO hybrid_runner_reader;

GRANT SELECT ON TABLE hybrid_monitors.migrations TO hybrid_monitors_editor;

GRANT SELECT ON TABLE hybrid_monitors.migrations TO hybrid_runner_worker;

GRANT SELECT ON TABLE hybrid_monitors.migrations TO hybrid_runner_reader;

GRANT SELECT ON TABLE hybrid_monitors.overview TO hybrid_monitors_editor;

GRANT SELECT ON TABLE hybrid_monitors.overview TO hybrid_runner_worker;

GRANT SELECT ON TABLE hybrid_monitors.overview TO hybrid_runner_reader;

GRANT SELECT ON TABLE hybrid_monitors.retention TO hybrid_monitors_editor;

GRANT SELECT ON TABLE hybrid_monitors.retention TO hybrid_runner_worker;

GRANT SELECT ON TABLE hybrid_monitors.retention TO hybrid_runner_reader;

GRANT SELECT ON TABLE hybrid_monitors.partitions TO hybrid_monitors_editor;

GRANT SELECT ON TABLE hybrid_monitors.partitions TO hybrid_runner_worker;

GRANT SELECT ON TABLE hybrid_monitors.partitions TO hybrid_runner_reader;

GRANT SELECT ON SEQUENCE hybrid_monitors.services_id_seq TO hybrid_monitors_editor;

GRANT SELECT ON SEQUENCE hybrid_monitors.services_id_seq TO hybrid_runner_worker;

GRANT SELECT ON SEQUENCE hybrid_monitors.services_id_seq TO hybrid_runner_reader;

GRANT SELECT ON TABLE hybrid_monitors.upkeep_runs TO hybrid_monitors_editor;

GRANT SELECT ON TABLE hybrid_monitors.upkeep_runs TO hybrid_runner_worker;

GRANT SELECT ON TABLE hybrid_monitors.upkeep_runs TO hybrid_runner_reader;

GRANT SELECT ON SEQUENCE hybrid_monitors.windows_id_seq TO hybrid_monitors_editor;

GRANT SELECT ON SEQUENCE hybrid_monitors.windows_id_seq TO hybrid_runner_worker;

GRANT SELECT ON SEQUENCE hybrid_monitors.windows_id_seq TO hybrid_runner_reader;

ALTER DEFAULT PRIVILEGES IN SCHEMA hybrid_monitors GRANT SELECT ON TABLES TO hybrid_runner_worker;

ALTER DEFAULT PRIVILEGES IN SCHEMA hybrid_monitors GRANT SELECT ON TABLES TO hybrid_runner_reader;

ALTER DEFAULT PRIVILEGES IN SCHEMA hybrid_monitors GRANT SELECT ON TABLES TO hybrid_monitors_editor;
