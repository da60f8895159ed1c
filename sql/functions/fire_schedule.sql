-- fire_schedule: for fire_schedules, which has locked the row: do what is due of one schedule. The
-- jobs of its ticks, its counters and its next tick are one transaction.
-- One row for each outcome: `ticks` of them, of which `tick` is the last one; without a job if it
-- waits for the end of the one that lives.
CREATE OR REPLACE FUNCTION hybrid_runner.fire_schedule(
    its hybrid_runner.schedules, moment timestamptz
) RETURNS TABLE (schedule text, tick timestamptz, outcome text, ticks integer, job_id bigint, late interval)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_column
DECLARE
    due timestamptz := CASE WHEN its.next_at <= moment THEN its.next_at END;
    -- what is due: the ticks that are to have a job each, for how many each of these stands, and
    -- how many are to have none
    wanted timestamptz[] := '{}';
    weight integer := 1;
    is_missed boolean := false;
    dropping bigint := 0;
    -- what becomes of it: jobs now, or later, or none
    lives boolean;
    waiting timestamptz[] := coalesce(its.waiting_ticks, '{}');
    freed timestamptz[] := '{}';
    made timestamptz[] := '{}';
    room integer;
    chosen integer := 0;
    skipping bigint := 0;
    new_job bigint;
    live record;
BEGIN
    IF due IS NOT NULL THEN
        SELECT m.wanted, m.weight, m.is_missed, m.dropped, m.ticked_until
        INTO wanted, weight, is_missed, dropping, its.ticked_until
        FROM hybrid_runner.missed_ticks(its, moment) AS m;
        its.last_tick := coalesce(wanted[cardinality(wanted)], due);
        its.next_at := hybrid_runner.tick_after(its);
    END IF;

    -- A new statement: it sees whatever was committed before this row was locked.
    lives := EXISTS (SELECT FROM hybrid_runner.jobs AS j WHERE j.schedule = its.name);
    IF NOT lives AND cardinality(waiting) > 0 THEN
        -- The job has ended for which this one waited, and who ended it could not see that.
        freed := waiting[1:1];
        waiting := waiting[2:];
        lives := true;
    END IF;
    CASE
        WHEN cardinality(wanted) = 0 THEN
            NULL;
        WHEN its.overlap = 'allow' THEN
            made := wanted;
            chosen := cardinality(made);
        WHEN its.overlap = 'replace' THEN
            skipping := cardinality(wanted) - 1;
            wanted := wanted[cardinality(wanted):];
            IF lives AND freed = '{}' THEN
                IF waiting <> '{}' THEN -- so that the end of what is cancelled here frees nothing
                    UPDATE hybrid_runner.schedules AS s SET waiting_ticks = NULL WHERE s.name = its.name;
                END IF;
                -- What somebody has locked is about to end, or waited for.
                FOR live IN
                    SELECT j.id FROM hybrid_runner.jobs AS j WHERE j.schedule = its.name
                    ORDER BY j.id LIMIT 100 FOR UPDATE SKIP LOCKED
                LOOP
                    PERFORM hybrid_runner.cancel(live.id, 'replaced by the next tick of its schedule');
                END LOOP;
                lives := EXISTS (SELECT FROM hybrid_runner.jobs AS j WHERE j.schedule = its.name);
            END IF;
            -- One that waits, or has waited until now, stands for this one as well.
            IF freed <> '{}' OR waiting <> '{}' THEN
                skipping := skipping + 1;
            ELSE
                chosen := 1;
            END IF;
            IF NOT lives OR freed <> '{}' THEN
                made := wanted;
                freed := '{}';
                waiting := '{}';
            ELSE
                waiting := wanted;
            END IF;
        ELSE
            IF NOT lives THEN
                made := wanted[1:1];
                wanted := wanted[2:];
            END IF;
            room := CASE WHEN its.overlap <> 'queue' THEN 0 WHEN its.missed = 'all' THEN 1000 ELSE 1 END
                - cardinality(waiting);
            chosen := cardinality(made) + least(greatest(room, 0), cardinality(wanted));
            skipping := cardinality(made) + cardinality(wanted) - chosen;
            waiting := waiting || wanted[:greatest(room, 0)];
    END CASE;

    IF freed || made <> '{}' THEN
        new_job := hybrid_runner.store_ticks(its, freed || made);
    END IF;
    chosen := chosen * weight;
    skipping := skipping * weight;
    UPDATE hybrid_runner.schedules AS s SET
        next_at = its.next_at, ticked_until = its.ticked_until, last_tick = its.last_tick,
        last_job = coalesce(new_job, s.last_job), waiting_ticks = nullif(waiting, '{}'),
        fired = s.fired + CASE WHEN is_missed THEN 0 ELSE chosen END,
        caught_up = s.caught_up + CASE WHEN is_missed THEN chosen ELSE 0 END,
        skipped = s.skipped + skipping, dropped = s.dropped + dropping
    WHERE s.name = its.name;

    RETURN QUERY
    SELECT
        its.name, coalesce(its.last_tick, freed[1]), o.outcome, o.number::integer,
        CASE WHEN o.has_job AND made || freed <> '{}' THEN new_job END,
        moment - coalesce(due, moment)
    FROM (VALUES
        (CASE WHEN is_missed THEN 'caught_up' ELSE 'fired' END, chosen::bigint, true),
        ('skipped', skipping, false), ('dropped', dropping, false)
    ) AS o (outcome, number, has_job)
    WHERE o.number > 0;
END
$$;
