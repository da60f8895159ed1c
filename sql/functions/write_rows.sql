-- write_rows: write into rows of an attached table what became of their jobs; says for each job
-- whether its row was written.
-- Outcomes: written; kept (its application has decided otherwise); again (it was wanted anew, and a
-- new job was stored); unwanted (the job must not run); gone (there is no such row); locked,
-- refused, and undone by a trigger (the row is in late_rows now, and is written later); detached.
-- Whoever calls it has locked these jobs, or deleted them in this transaction: nobody else may
-- write a row of theirs in between. It never waits for somebody who holds a row.
-- What the states mean, row_verdict says. Of a row without a job the id is negative.
-- is_checked: a job that ended is not the row's last one if there is a newer one.
-- put_off: nothing of the table is touched, and all these rows are late. So it is in the session of
-- a superuser who does not own the table.
CREATE OR REPLACE FUNCTION hybrid_runner.write_rows(
    source integer, job_ids bigint[], keys text[], states text[], were_queued boolean[],
    retries integer[], workers text[], started timestamptz[], finished timestamptz[],
    results text[], errors text[], is_checked boolean DEFAULT false, put_off boolean DEFAULT false
) RETURNS TABLE (job_id bigint, outcome text, word text)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
SET plan_cache_mode = 'force_generic_plan' SET enable_seqscan = off
AS $$
#variable_conflict use_column
DECLARE
    were_late boolean;
    unshown text[];
    outcomes text[];
    words text[];
    seens text[];
    ids bigint[];
    why text := 'somebody holds the row';
    is_news boolean;
    is_outranked boolean;
BEGIN
    IF NOT EXISTS (SELECT FROM hybrid_runner.sources AS s WHERE s.id = write_rows.source) THEN
        RETURN QUERY SELECT a.id, 'detached', NULL::text
        FROM unnest(write_rows.job_ids) AS a (id);
        RETURN;
    END IF;
    were_late := EXISTS (
        SELECT FROM hybrid_runner.late_rows AS l WHERE l.source = write_rows.source
    );
    IF were_late THEN unshown := ARRAY(
        SELECT l.seen
        FROM unnest(write_rows.keys) WITH ORDINALITY AS a (key, place)
        LEFT JOIN hybrid_runner.late_rows AS l
            ON l.source = write_rows.source AND l.row_key = a.key
        ORDER BY a.place
    );
    END IF;
    is_outranked := hybrid_runner.outranks_owner(write_rows.source);
    put_off := put_off OR is_outranked;
    IF put_off THEN
        ids := write_rows.job_ids;
        outcomes := array_fill('locked'::text, ARRAY[cardinality(ids)]);
        why := CASE
            WHEN is_outranked
                THEN 'a superuser runs no code of the table''s owner: use a worker login that is no superuser, or attach it anew'
            ELSE 'a worker writes it later'
        END;
    ELSE
        BEGIN
            EXECUTE format(
                'SELECT w.ids, w.outcomes, w.words, w.seens FROM hybrid_runner.%I('
                '$1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12) AS w',
                'source_' || write_rows.source || '_write'
            )
            INTO ids, outcomes, words, seens
            USING write_rows.job_ids, write_rows.keys, write_rows.states, write_rows.were_queued,
                write_rows.retries, write_rows.workers, write_rows.started, write_rows.finished,
                write_rows.results, write_rows.errors, unshown, write_rows.is_checked;
        EXCEPTION
            WHEN OTHERS THEN
                why := left(format('%s (%s)', SQLERRM, SQLSTATE), 1000);
                ids := write_rows.job_ids;
                outcomes := array_fill('refused'::text, ARRAY[cardinality(ids)]);
                words := NULL;
                seens := NULL;
                IF 'running' = ANY (write_rows.states) OR true = ANY (write_rows.were_queued) THEN
                    BEGIN
                        SELECT array_agg(r.word ORDER BY a.place), array_agg(r.seen ORDER BY a.place)
                        INTO words, seens
                        FROM unnest(write_rows.keys) WITH ORDINALITY AS a (key, place)
                        LEFT JOIN hybrid_runner.rows_of_source(
                            write_rows.source, 'seen', write_rows.keys, NULL) AS r ON r.row_key = a.key;
                    EXCEPTION
                        WHEN OTHERS THEN
                            NULL; -- the one that asked for the row has to wait, and its read fails too
                    END;
                END IF;
        END;
    END IF;

    IF outcomes && ARRAY['locked', 'refused', 'undone'] THEN
        WITH noted AS (
            INSERT INTO hybrid_runner.late_rows AS l
                (source, row_key, job_id, state, why, is_refused, seen)
            SELECT
                write_rows.source, a.key, CASE WHEN a.id > 0 THEN a.id END, a.state,
                CASE o.outcome WHEN 'undone' THEN 'a trigger of the table keeps its status' ELSE why END,
                o.outcome = 'undone' OR o.outcome = 'refused' AND cardinality(write_rows.keys) = 1,
                CASE
                    WHEN o.outcome = 'undone' THEN o.seen
                    WHEN is_checked THEN NULL
                    WHEN a.state IN ('running', 'retried') OR a.was_queued THEN o.seen
                END
            FROM unnest(write_rows.job_ids, write_rows.keys, write_rows.states, write_rows.were_queued)
                AS a (id, key, state, was_queued)
            JOIN unnest(ids, outcomes, seens) AS o (id, outcome, seen) ON o.id = a.id
            WHERE o.outcome IN ('locked', 'refused', 'undone') AND a.state <> 'beat'
            ORDER BY a.key COLLATE "C"
            ON CONFLICT ON CONSTRAINT late_rows_pkey DO UPDATE SET
                job_id = excluded.job_id, state = excluded.state, why = excluded.why,
                is_refused = excluded.is_refused, tries = l.tries + 1,
                -- Once it could not be shown, that stays so until it is written.
                seen = coalesce(excluded.seen, l.seen)
            RETURNING l.tries = 0 AS is_new
        )
        SELECT bool_or(n.is_new) INTO is_news FROM noted AS n;
        IF is_news THEN
            PERFORM hybrid_runner.notify_if_room('hybrid_runner.~sources', 'changes');
        END IF;
    END IF;
    IF were_late THEN
        DELETE FROM hybrid_runner.late_rows AS l
        WHERE l.source = write_rows.source AND l.row_key = ANY (ARRAY(
            SELECT a.key
            FROM unnest(write_rows.job_ids, write_rows.keys, write_rows.states) AS a (id, key, state)
            -- A heartbeat says nothing of what the row shows.
            WHERE a.state <> 'beat'
                -- A CASE is looked up in a hash; joined they would be in loops, each with each.
                AND CASE WHEN a.id IN (
                    SELECT o.id
                    FROM unnest(ids, outcomes) AS o (id, outcome)
                    WHERE o.outcome NOT IN ('locked', 'refused', 'undone')
                ) THEN true END
        ));
    END IF;

    RETURN QUERY
    SELECT o.id, o.outcome, o.word
    FROM unnest(ids, outcomes, words) AS o (id, outcome, word);
END
$$;
