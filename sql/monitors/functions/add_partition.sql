-- add_partition: attach one partition to a table; what landed in its default partition meanwhile
-- moves over.
CREATE OR REPLACE FUNCTION hybrid_monitors.add_partition(
    what text, opens timestamptz, closes timestamptz
) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
AS $$
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
$$;
