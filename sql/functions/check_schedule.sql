-- check_schedule: the trigger on schedules: refuses what cannot be, in one line that names the
-- field, and fills in when it fires next.
CREATE OR REPLACE FUNCTION hybrid_runner.check_schedule() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    line text;
    is_new boolean := TG_OP = 'INSERT';
BEGIN
    -- fire_schedules pauses a row that it cannot read: that must not fail for the same reason.
    IF TG_OP = 'UPDATE' AND new.paused_at >= timestamptz '1970-01-01 UTC'
        AND new.paused_at < timestamptz '9000-01-01 UTC' AND new.ticked_until = old.ticked_until AND (
        new.name, new.kind, new.queue, new.payload, new.priority, new.max_attempts, new.timeout,
        new.cron, new.every, new.at, new.timezone, new.overlap, new.missed, new.catch_up,
        new.jitter, new.starts_at, new.ends_at
    ) IS NOT DISTINCT FROM (
        old.name, old.kind, old.queue, old.payload, old.priority, old.max_attempts, old.timeout,
        old.cron, old.every, old.at, old.timezone, old.overlap, old.missed, old.catch_up,
        old.jitter, old.starts_at, old.ends_at
    ) THEN
        new.version := old.version + 1;
        RETURN new;
    END IF;
    BEGIN
        PERFORM hybrid_runner.check_name('name', new.name, 128);
        PERFORM hybrid_runner.check_name('kind', new.kind, 128);
        IF new.queue IS NOT NULL THEN
            PERFORM hybrid_runner.check_name('queue', new.queue, 48);
        END IF;
        IF num_nonnulls(new.cron, new.every, new.at) <> 1 THEN
            RAISE EXCEPTION 'give one of cron, every and at, not %', coalesce(nullif(concat_ws(
                ' and ', CASE WHEN new.cron IS NOT NULL THEN 'cron' END,
                CASE WHEN new.every IS NOT NULL THEN 'every' END,
                CASE WHEN new.at IS NOT NULL THEN 'at' END), ''), 'none')
                USING ERRCODE = 'invalid_parameter_value';
        END IF;
        IF new.payload IS NULL OR octet_length(new.payload::text) > 1048576 THEN
            RAISE EXCEPTION 'payload must be JSON of at most 1 MiB as text, not %',
                coalesce(octet_length(new.payload::text) || ' bytes', 'NULL')
                USING ERRCODE = 'invalid_parameter_value';
        END IF;
        IF new.priority IS NULL OR new.priority NOT BETWEEN 0 AND 9 THEN
            RAISE EXCEPTION 'priority must be 0 to 9, not %', coalesce(new.priority::text, 'NULL')
                USING ERRCODE = 'invalid_parameter_value';
        END IF;
        IF new.max_attempts NOT BETWEEN 1 AND 1000 THEN
            RAISE EXCEPTION 'max_attempts must be 1 to 1000, not %', new.max_attempts
                USING ERRCODE = 'invalid_parameter_value';
        END IF;
        PERFORM hybrid_runner.check_interval(
            'timeout', new.timeout, '1 microsecond', '3650 days', 'more than zero and at most ten years');
        PERFORM hybrid_runner.check_interval(
            'every', new.every, '1 second', '3650 days', '1 second to ten years');
        PERFORM hybrid_runner.check_word('overlap', new.overlap, '{skip,queue,allow,replace}');
        PERFORM hybrid_runner.check_word('missed', new.missed, '{one,all,none}');
        IF new.missed = 'all' AND new.overlap NOT IN ('queue', 'allow') THEN
            RAISE EXCEPTION 'missed all goes with overlap queue or allow: with % all but one would be lost',
                new.overlap USING ERRCODE = 'invalid_parameter_value';
        END IF;
        IF num_nulls(new.catch_up, new.jitter, new.timezone) > 0 THEN
            RAISE EXCEPTION 'catch_up, jitter and timezone must not be NULL'
                USING ERRCODE = 'invalid_parameter_value';
        END IF;
        PERFORM hybrid_runner.check_interval(
            'catch_up', new.catch_up, '0', '366 days', 'zero to 366 days');
        PERFORM hybrid_runner.check_interval('jitter', new.jitter, '0', '1 day', 'zero to a day');
        IF new.jitter > new.every THEN
            RAISE EXCEPTION 'jitter must not be more than every, which is %', new.every
                USING ERRCODE = 'invalid_parameter_value';
        END IF;
        PERFORM hybrid_runner.check_time('at', new.at);
        PERFORM hybrid_runner.check_time('starts_at', new.starts_at);
        PERFORM hybrid_runner.check_time('ends_at', new.ends_at);
        PERFORM hybrid_runner.check_time('paused_at', new.paused_at);
        IF new.at IS NOT NULL AND num_nonnulls(new.starts_at, new.ends_at) > 0 THEN
            RAISE EXCEPTION 'at is one time: it goes without starts_at and ends_at'
                USING ERRCODE = 'invalid_parameter_value';
        END IF;
        IF new.ends_at < new.starts_at THEN
            RAISE EXCEPTION 'ends_at must not be before starts_at'
                USING ERRCODE = 'invalid_parameter_value';
        END IF;
        IF is_new OR new.timezone <> old.timezone THEN
            PERFORM hybrid_runner.check_zone(new.timezone);
        END IF;
        IF new.cron IS NOT NULL AND (is_new OR new.cron IS DISTINCT FROM old.cron) THEN
            PERFORM hybrid_runner.read_cron(new.cron);
        END IF;
    EXCEPTION
        WHEN invalid_parameter_value THEN
            GET STACKED DIAGNOSTICS line = MESSAGE_TEXT;
            RAISE EXCEPTION 'schedule %: %', hybrid_runner.shown(new.name), line
                USING ERRCODE = 'invalid_parameter_value';
    END;
    IF is_new THEN
        new.ticked_until := hybrid_runner.tick_clock();
        new.next_at := hybrid_runner.tick_after(new);
    ELSE
        new.version := old.version + 1;
        -- By other times the next tick is another one. A tick that waits has its turn all the same.
        IF (new.cron, new.every, new.at, new.timezone, new.starts_at, new.ends_at)
            IS DISTINCT FROM (old.cron, old.every, old.at, old.timezone, old.starts_at, old.ends_at)
            OR (old.paused_at IS NOT NULL AND new.paused_at IS NULL) THEN
            -- Never back: a clock that was set back brings no tick again.
            new.ticked_until := greatest(old.ticked_until, hybrid_runner.tick_clock());
            IF old.paused_at IS NOT NULL AND new.paused_at IS NULL THEN
                new.note := NULL;
            END IF;
            new.next_at := hybrid_runner.tick_after(new);
        END IF;
    END IF;
    RETURN new;
END
$$;
