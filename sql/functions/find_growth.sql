-- find_growth: what lets tables grow, and the queue of notifications, and who is to blame.
CREATE OR REPLACE FUNCTION hybrid_runner.find_growth(
    longer_than interval DEFAULT '10 minutes'
) RETURNS TABLE (cause text, complaint text)
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp SET timezone = 'UTC' SET datestyle = 'ISO'
AS $$
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
$$;
