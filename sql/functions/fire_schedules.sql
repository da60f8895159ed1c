-- fire_schedules: store the jobs of all ticks that are due, of at most so many schedules, the
-- latest first. Everybody may call it at once: each tick makes one job. What somebody else has
-- locked is left to him.
CREATE OR REPLACE FUNCTION hybrid_runner.fire_schedules(
    most integer DEFAULT 100
) RETURNS TABLE (schedule text, tick timestamptz, outcome text, ticks integer, job_id bigint, late interval)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
-- Its plans fit any table, whenever they were made.
SET enable_seqscan = off
AS $$
#variable_conflict use_column
DECLARE
    its hybrid_runner.schedules;
    moment timestamptz := hybrid_runner.tick_clock();
    line text;
BEGIN
    IF NOT EXISTS (SELECT FROM hybrid_runner.schedules) THEN
        RETURN;
    END IF;
    PERFORM hybrid_runner.keep_schedule_duty();
    PERFORM hybrid_runner.renew_ticks();
    FOR its IN
        SELECT s.*
        FROM (
            SELECT w.name FROM hybrid_runner.schedules AS w
            WHERE w.waiting_ticks IS NOT NULL AND w.paused_at IS NULL
                AND NOT EXISTS (SELECT FROM hybrid_runner.jobs AS j WHERE j.schedule = w.name)
            UNION
            SELECT d.name FROM hybrid_runner.schedules AS d
            WHERE d.next_at <= moment AND d.paused_at IS NULL
        ) AS due
        JOIN hybrid_runner.schedules AS s ON s.name = due.name
        WHERE s.paused_at IS NULL AND (s.next_at <= moment OR s.waiting_ticks IS NOT NULL)
            AND (NOT s.declared OR s.name IN (SELECT hybrid_runner.declared_now()))
        ORDER BY s.next_at
        LIMIT least(greatest(fire_schedules.most, 0), 1000)
        FOR UPDATE OF s SKIP LOCKED
    LOOP
        BEGIN
            RETURN QUERY
            SELECT f.schedule, f.tick, f.outcome, f.ticks, f.job_id, f.late
            FROM hybrid_runner.fire_schedule(its) AS f;
        EXCEPTION
            WHEN OTHERS THEN
                -- What is wrong with the row, and not with the server or the moment, would be wrong
                -- again: it must not keep others from firing.
                IF left(SQLSTATE, 2) NOT IN ('21', '22', '23', '39', '42', '54', 'P0') THEN
                    RAISE;
                END IF;
                GET STACKED DIAGNOSTICS line = MESSAGE_TEXT;
                UPDATE hybrid_runner.schedules AS s SET
                    paused_at = clock_timestamp(), dropped = s.dropped + 1,
                    note = 'paused, since it could not fire: '
                        || left(regexp_replace(line, '[^[:print:]]', ' ', 'g'), 500)
                WHERE s.name = its.name;
                RETURN QUERY SELECT its.name, its.next_at, 'dropped', 1, NULL::bigint,
                    moment - its.next_at;
        END;
    END LOOP;
END
$$;
