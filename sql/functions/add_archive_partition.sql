-- add_archive_partition: attach one partition to a half of the archive; what landed in its default
-- partition meanwhile moves over.
CREATE OR REPLACE FUNCTION hybrid_runner.add_archive_partition(
    half text, opens timestamptz, closes timestamptz
) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
AS $$
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
$$;
