-- apply_to_jobs: what changes of rows mean for their jobs; says for each place in the arrays:
-- cancelled (the job was queued), told (the worker that runs it), stored (a job for a row that was
-- wanted while another one had its key), nothing, or later, with what Postgres said if it refused.
-- The jobs are locked, and then the rows are read: one that moved between partitions was not
-- deleted, and one that was cancelled may be wanted again by now, and even run. A job that somebody
-- has locked is for later, and nothing waits for it; so is one that was claimed just now: if its
-- row does not show that yet, it is read when it does.
CREATE OR REPLACE FUNCTION hybrid_runner.apply_to_jobs(
    source integer, keys text[], whats text[]
) RETURNS TABLE (place integer, did text, refused text)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_column
DECLARE
    own jsonb;
    live text[];
    found jsonb;
    failed jsonb := '{}';
    key text;
BEGIN
    SELECT coalesce(jsonb_object_agg(j.row_key, j.id), '{}') INTO own
    FROM (
        SELECT o.row_key, o.id
        FROM hybrid_runner.jobs AS o
        WHERE o.source = apply_to_jobs.source AND o.row_key = ANY (apply_to_jobs.keys)
            AND (o.state = 'queued' OR o.started_at <= clock_timestamp() - interval '1 second')
        FOR UPDATE OF o SKIP LOCKED
    ) AS j;
    live := ARRAY(
        SELECT j.row_key
        FROM hybrid_runner.jobs AS j
        WHERE j.source = apply_to_jobs.source AND j.row_key = ANY (apply_to_jobs.keys)
    );
    IF EXISTS (SELECT FROM hybrid_runner.sources AS s WHERE s.id = apply_to_jobs.source) THEN
        BEGIN
            SELECT coalesce(jsonb_object_agg(r.row_key, jsonb_build_array(r.is_wanted, r.is_cancelled)), '{}')
            INTO found
            FROM hybrid_runner.rows_of_source(apply_to_jobs.source, 'judged', apply_to_jobs.keys, NULL) AS r;
        EXCEPTION
            WHEN OTHERS THEN
                -- One row may be at fault: each is asked alone.
                found := '{}';
                FOREACH key IN ARRAY apply_to_jobs.keys LOOP
                    BEGIN
                        found := found || coalesce((
                            SELECT jsonb_build_object(r.row_key, jsonb_build_array(r.is_wanted, r.is_cancelled))
                            FROM hybrid_runner.rows_of_source(apply_to_jobs.source, 'judged', ARRAY[key], NULL) AS r
                        ), '{}');
                    EXCEPTION
                        WHEN OTHERS THEN
                            failed := failed || jsonb_build_object(
                                key, left(format('%s (%s)', SQLERRM, SQLSTATE), 1000));
                    END;
                END LOOP;
        END;
    END IF;

    FOR at IN 1..cardinality(apply_to_jobs.keys) LOOP
        place := at;
        key := apply_to_jobs.keys[at];
        refused := failed ->> key;
        IF refused IS NOT NULL OR key = ANY (live) AND NOT own ? key THEN
            did := 'later';
        ELSIF found IS NULL THEN
            did := 'nothing'; -- it is not attached any more
        ELSE
            BEGIN
                did := CASE
                    WHEN apply_to_jobs.whats[at] = 'wanted' THEN CASE
                        WHEN NOT own ? key AND (found -> key -> 0)::boolean
                            THEN hybrid_runner.want_again(apply_to_jobs.source, key)
                        ELSE 'nothing'
                    END
                    WHEN NOT own ? key THEN 'nothing'
                    WHEN NOT found ? key THEN hybrid_runner.cancel((own ->> key)::bigint, 'its row was deleted', by_row => true)
                    WHEN apply_to_jobs.whats[at] = 'cancelled' AND (found -> key -> 1)::boolean
                        THEN hybrid_runner.cancel((own ->> key)::bigint, 'its row was cancelled', by_row => true)
                    ELSE 'nothing'
                END;
                did := CASE did WHEN 'requested' THEN 'told' WHEN 'finished' THEN 'nothing' ELSE did END;
                refused := NULL;
            EXCEPTION
                WHEN OTHERS THEN
                    did := 'later';
                    refused := left(format('%s (%s)', SQLERRM, SQLSTATE), 1000);
            END;
        END IF;
        RETURN NEXT;
    END LOOP;
END
$$;
