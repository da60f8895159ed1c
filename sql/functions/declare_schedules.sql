-- declare_schedules: for workers: write down what their code declares, in order, so that those that
-- start together do not wait for each other in a circle, and only what differs. Rows for those that
-- could not be written now, since somebody's open transaction has their name.
CREATE OR REPLACE FUNCTION hybrid_runner.declare_schedules(
    names text[], kinds text[], payloads text[], crons text[], everys interval[], ats timestamptz[],
    timezones text[], queues text[], priorities integer[], max_attempts integer[],
    timeouts interval[], overlaps text[], missed text[], catch_ups interval[], jitters interval[],
    starts_at timestamptz[], ends_at timestamptz[]
) RETURNS TABLE (name text, problem text)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET lock_timeout = '2s'
AS $$
#variable_conflict use_column
DECLARE
    d record;
BEGIN
    FOR d IN
        SELECT
            u.name, u.kind, u.payload, u.cron, u.every, u.at, u.timezone, u.queue, u.priority,
            u.max_attempts, u.timeout, u.overlap, u.missed, u.catch_up, u.jitter, u.starts_at, u.ends_at
        FROM unnest(
            declare_schedules.names, declare_schedules.kinds, declare_schedules.payloads,
            declare_schedules.crons, declare_schedules.everys, declare_schedules.ats,
            declare_schedules.timezones, declare_schedules.queues, declare_schedules.priorities,
            declare_schedules.max_attempts, declare_schedules.timeouts, declare_schedules.overlaps,
            declare_schedules.missed, declare_schedules.catch_ups, declare_schedules.jitters,
            declare_schedules.starts_at, declare_schedules.ends_at
        ) AS u (
            name, kind, payload, cron, every, at, timezone, queue, priority, max_attempts, timeout,
            overlap, missed, catch_up, jitter, starts_at, ends_at
        )
        ORDER BY u.name COLLATE "C"
    LOOP
        BEGIN
            PERFORM hybrid_runner.store_schedule(
                d.name, d.kind, d.payload::jsonb, d.cron, d.every, d.at, d.timezone, d.queue,
                d.priority, d.max_attempts, d.timeout, d.overlap, d.missed, d.catch_up, d.jitter,
                d.starts_at, d.ends_at, true);
        EXCEPTION
            WHEN lock_not_available THEN
                -- Who holds one may hold all of them, and nothing fires meanwhile.
                PERFORM set_config('lock_timeout', '10ms', true);
                RETURN QUERY SELECT d.name, 'somebody''s open transaction has this schedule: it stays as it is';
        END;
    END LOOP;
END
$$;
