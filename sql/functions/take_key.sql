-- take_key: take a key for so long, whatever becomes of the job that has it; NULL: it was free, and
-- the caller writes which job it is for; otherwise the job that took it before.
-- Two who take the same key wait for each other: the second one learns what became of the first.
CREATE OR REPLACE FUNCTION hybrid_runner.take_key(key text, unique_for interval) RETURNS bigint
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
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
