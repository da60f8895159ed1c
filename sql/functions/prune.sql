-- prune: delete what is no longer kept, a bounded amount a call; returns what was done to which
-- partition.
CREATE OR REPLACE FUNCTION hybrid_runner.prune(
    most integer DEFAULT 20
) RETURNS TABLE (what text, partition text, bytes bigint)
LANGUAGE plpgsql SECURITY DEFINER
-- A statement that waits for a lock holds up all later ones: so wait briefly, and try again at the
-- next call.
SET search_path = pg_catalog, pg_temp SET timezone = 'UTC' SET datestyle = 'ISO'
SET lock_timeout = '300ms'
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
$$;
