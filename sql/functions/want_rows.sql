-- want_rows: store jobs for rows of an attached table that are wanted and have none; says
-- how many. With blocks, only for rows in that part of the table, or of each of its partitions:
-- whoever goes through a large one would read it from its start each time.
CREATE OR REPLACE FUNCTION hybrid_runner.want_rows(
    source integer, most integer, first_block bigint DEFAULT 0, blocks bigint DEFAULT NULL
) RETURNS integer
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
AS $$
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
$$;
