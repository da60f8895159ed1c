-- fire_schedules: store the jobs of all ticks that are due, of at most so many schedules, those
-- first that are due longest. Everybody may call it at once: each tick makes one job. What somebody
-- else has locked is left to him.
-- Usually one tick is due and no job lives: all of these are one statement. Everything else is done
-- row by row, and so is everything if one row spoils that statement.
CREATE OR REPLACE FUNCTION hybrid_runner.fire_schedules(
    most integer DEFAULT 100
) RETURNS TABLE (schedule text, tick timestamptz, outcome text, ticks integer, job_id bigint, late interval)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
-- Its plans fit any table, whenever they were made.
SET enable_seqscan = off SET plan_cache_mode = 'force_generic_plan'
-- Only what replaces a job waits for others' locks: others are not to fire late for that.
SET lock_timeout = '100ms'
AS $$
#variable_conflict use_column
DECLARE
    its hybrid_runner.schedules;
    moment timestamptz := hybrid_runner.tick_clock();
    coming timestamptz;
    names text[] := '{}';
    dues timestamptz[] := '{}';
    nexts timestamptz[] := '{}';
    others text[] := '{}';
    written text[];
    jobs bigint[];
    line text;
    began timestamptz;
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
        coming := moment;
        IF its.waiting_ticks IS NULL AND its.next_at BETWEEN moment - interval '1 minute' AND moment THEN
            its.ticked_until := its.next_at;
            its.last_tick := its.next_at;
            BEGIN
                coming := hybrid_runner.tick_after(its);
            EXCEPTION
                WHEN OTHERS THEN
                    NULL; -- which fire_schedule finds as well
            END;
        END IF;
        IF coming <= moment THEN
            others := others || its.name;
        ELSE
            names := names || its.name;
            dues := dues || its.next_at;
            nexts := nexts || coming;
        END IF;
    END LOOP;

    BEGIN
        -- A new statement: it sees whatever was committed before these rows were locked.
        WITH due AS (
            SELECT u.name, u.tick, u.coming FROM unnest(names, dues, nexts) AS u (name, tick, coming)
        ),
        made AS (
            INSERT INTO hybrid_runner.jobs AS j (
                kind, payload, queue, priority, run_at, max_attempts, timeout, traceparent,
                enqueued_by, schedule, tick
            )
            SELECT
                s.kind, s.payload, coalesce(s.queue, k.queue, 'default'), s.priority,
                CASE WHEN s.jitter = interval '0' THEN d.tick
                    ELSE hybrid_runner.jittered(s.name, d.tick, s.jitter) END,
                s.max_attempts, s.timeout, NULL, s.made_by, s.name, d.tick
            FROM due AS d
            JOIN hybrid_runner.schedules AS s ON s.name = d.name
            LEFT JOIN hybrid_runner.kinds AS k ON k.name = s.kind
            WHERE s.overlap = 'allow' OR NOT EXISTS (
                SELECT FROM hybrid_runner.jobs AS live WHERE live.schedule = d.name
            )
            RETURNING j.id, j.schedule
        ),
        done AS (
            UPDATE hybrid_runner.schedules AS s SET
                next_at = d.coming, ticked_until = d.tick, last_tick = d.tick,
                last_job = coalesce(m.id, s.last_job),
                fired = s.fired + CASE WHEN m.id IS NULL THEN 0 ELSE 1 END,
                skipped = s.skipped + CASE WHEN m.id IS NULL THEN 1 ELSE 0 END
            FROM due AS d
            LEFT JOIN made AS m ON m.schedule = d.name
            WHERE s.name = d.name AND (m.id IS NOT NULL OR s.overlap = 'skip')
            RETURNING s.name, m.id
        )
        SELECT array_agg(d.name), array_agg(d.id) INTO written, jobs FROM done AS d;
    EXCEPTION
        WHEN data_exception OR integrity_constraint_violation OR plpgsql_error
            OR program_limit_exceeded OR syntax_error_or_access_rule_violation THEN
            written := '{}';
            jobs := '{}';
    END;
    RETURN QUERY
    SELECT w.name, d.tick, CASE WHEN w.id IS NULL THEN 'skipped' ELSE 'fired' END, 1, w.id,
        moment - d.tick
    FROM unnest(written, jobs) AS w (name, id)
    JOIN unnest(names, dues) AS d (name, tick) ON d.name = w.name;

    began := clock_timestamp();
    FOR its IN
        SELECT s.* FROM unnest(names || others) AS u (name)
        JOIN hybrid_runner.schedules AS s ON s.name = u.name
        WHERE u.name <> ALL (coalesce(written, '{}'))
        ORDER BY s.next_at
    LOOP
        -- Hours may have been missed, of many schedules: a caller who gave up would come again, and
        -- give up again. What is left is due still.
        EXIT WHEN clock_timestamp() > began + interval '1 second';
        BEGIN
            RETURN QUERY
            SELECT f.schedule, f.tick, f.outcome, f.ticks, f.job_id, f.late
            FROM hybrid_runner.fire_schedule(its, moment) AS f;
        EXCEPTION
            WHEN lock_not_available THEN
                NULL; -- it is due still
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
                -- Without a next tick it was one that waited.
                RETURN QUERY SELECT its.name, coalesce(its.next_at, its.waiting_ticks[1]), 'dropped',
                    1, NULL::bigint, moment - coalesce(its.next_at, moment);
        END;
    END LOOP;
END
$$;
