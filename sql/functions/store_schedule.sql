-- store_schedule: for schedule and declare_schedules: write a schedule, if it differs from what
-- stands there; returns its next tick.
CREATE OR REPLACE FUNCTION hybrid_runner.store_schedule(
    name text, kind text, payload jsonb, cron text, every interval, at timestamptz, timezone text,
    queue text, priority integer, max_attempts integer, timeout interval, overlap text, missed text,
    catch_up interval, jitter interval, starts_at timestamptz, ends_at timestamptz, declared boolean
) RETURNS timestamptz
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_column
DECLARE
    -- What fits no smallint is refused by the trigger, in its words.
    new_priority smallint := CASE
        WHEN store_schedule.priority BETWEEN -32768 AND 32767 THEN store_schedule.priority
        WHEN store_schedule.priority IS NOT NULL THEN -1
    END;
    new_max_attempts smallint := CASE
        WHEN store_schedule.max_attempts BETWEEN -32768 AND 32767 THEN store_schedule.max_attempts
        WHEN store_schedule.max_attempts IS NOT NULL THEN -1
    END;
    coming timestamptz;
BEGIN
    SELECT s.next_at INTO coming
    FROM hybrid_runner.schedules AS s
    WHERE s.name = store_schedule.name AND (
        s.kind, s.payload, s.cron, s.every, s.at, s.timezone, s.queue, s.priority, s.max_attempts,
        s.timeout, s.overlap, s.missed, s.catch_up, s.jitter, s.starts_at, s.ends_at, s.declared
    ) IS NOT DISTINCT FROM (
        store_schedule.kind, store_schedule.payload, store_schedule.cron, store_schedule.every,
        store_schedule.at, store_schedule.timezone, store_schedule.queue, new_priority,
        new_max_attempts, store_schedule.timeout, store_schedule.overlap, store_schedule.missed,
        store_schedule.catch_up, store_schedule.jitter, store_schedule.starts_at,
        store_schedule.ends_at, store_schedule.declared
    );
    IF FOUND THEN
        RETURN coming;
    END IF;
    INSERT INTO hybrid_runner.schedules AS s (
        name, kind, payload, cron, every, at, timezone, queue, priority, max_attempts, timeout,
        overlap, missed, catch_up, jitter, starts_at, ends_at, declared
    )
    VALUES (
        store_schedule.name, store_schedule.kind, store_schedule.payload, store_schedule.cron,
        store_schedule.every, store_schedule.at, store_schedule.timezone, store_schedule.queue,
        new_priority, new_max_attempts, store_schedule.timeout, store_schedule.overlap,
        store_schedule.missed, store_schedule.catch_up, store_schedule.jitter,
        store_schedule.starts_at, store_schedule.ends_at, store_schedule.declared
    )
    ON CONFLICT (name) DO UPDATE SET
        kind = excluded.kind, payload = excluded.payload, cron = excluded.cron,
        every = excluded.every, at = excluded.at, timezone = excluded.timezone,
        queue = excluded.queue, priority = excluded.priority, max_attempts = excluded.max_attempts,
        timeout = excluded.timeout, overlap = excluded.overlap, missed = excluded.missed,
        catch_up = excluded.catch_up, jitter = excluded.jitter, starts_at = excluded.starts_at,
        ends_at = excluded.ends_at, declared = excluded.declared,
        -- What code declares is its worker's, whoever had the name before.
        made_by = CASE WHEN excluded.declared THEN session_user ELSE s.made_by END
    -- Somebody else may have made it since it was looked for.
    WHERE excluded.declared OR s.made_by = session_user OR has_column_privilege(
        session_user, 'hybrid_runner.schedules', 'paused_at', 'UPDATE')
    RETURNING s.next_at INTO coming;
    IF NOT FOUND THEN
        PERFORM hybrid_runner.own_schedule(store_schedule.name);
    END IF;
    RETURN coming;
END
$$;
