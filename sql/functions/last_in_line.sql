-- last_in_line: the job that waits last for a key, else the one that has it; NULL: neither.
-- While somebody holds one that waits, there can be a gap in the line for a while: what is behind
-- a gap of up to 16 is found.
CREATE OR REPLACE FUNCTION hybrid_runner.last_in_line(key text) RETURNS bigint
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
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
