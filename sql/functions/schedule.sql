-- schedule: have a job of a kind stored at certain times; returns the next one, or NULL with a
-- notice: never. Again with the same name it changes what differs; if nothing does, it goes on.
CREATE OR REPLACE FUNCTION hybrid_runner.schedule(
    name text, kind text, payload jsonb DEFAULT '{}', cron text DEFAULT NULL,
    every interval DEFAULT NULL, at timestamptz DEFAULT NULL, timezone text DEFAULT 'UTC',
    queue text DEFAULT NULL, priority integer DEFAULT 5, max_attempts integer DEFAULT NULL,
    timeout interval DEFAULT NULL, overlap text DEFAULT 'skip', missed text DEFAULT 'one',
    catch_up interval DEFAULT '1 day', jitter interval DEFAULT '0', starts_at timestamptz DEFAULT NULL,
    ends_at timestamptz DEFAULT NULL
) RETURNS timestamptz
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
-- A name is waited for while somebody's open transaction holds it, and no longer than this.
SET lock_timeout = '5s'
AS $$
#variable_conflict use_column
DECLARE
    coming timestamptz;
BEGIN
    PERFORM hybrid_runner.own_schedule(schedule.name);
    PERFORM hybrid_runner.queue_of(schedule.kind); -- which warns of what looks like a typo
    coming := hybrid_runner.store_schedule(
        schedule.name, schedule.kind, schedule.payload, schedule.cron, schedule.every, schedule.at,
        schedule.timezone, schedule.queue, schedule.priority, schedule.max_attempts,
        schedule.timeout, schedule.overlap, schedule.missed, schedule.catch_up, schedule.jitter,
        schedule.starts_at, schedule.ends_at, false);
    IF coming IS NULL THEN
        RAISE NOTICE 'schedule % will never fire', hybrid_runner.shown(schedule.name);
    END IF;
    RETURN coming;
END
$$;
