-- rewrite_archive: write what is kept of some partitions into one new one, and drop them; returns
-- its name, NULL if nothing is kept.
CREATE OR REPLACE FUNCTION hybrid_runner.rewrite_archive(
    half text, partitions text[], opens timestamptz, closes timestamptz
) RETURNS text
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
AS $$
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
$$;
