-- spread_services: put polls of a host off that would come in a burst: the first ones when many
-- services were added at once, and those that came due while nobody polled for longer than 10 s:
-- what a round gathers is not late.
-- Each gets its moment in its interval, so that at most twice as much as usual is polled. Returns
-- whether any was put off.
CREATE OR REPLACE FUNCTION hybrid_monitors.spread_services(
    host text, place double precision, last_look timestamptz, looked timestamptz
) RETURNS boolean
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
SET plan_cache_mode = 'force_generic_plan' SET enable_seqscan = off
SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off
AS $$
#variable_conflict use_column
DECLARE
    most CONSTANT integer := 100;
    has_new boolean;
    new integer;
    put_off integer := 0;
    put_off_again integer := 0;
BEGIN
    SELECT EXISTS (
        SELECT FROM hybrid_monitors.services AS s
        WHERE s.host = spread_services.host AND s.active AND NOT EXISTS (
            SELECT FROM hybrid_monitors.standings AS t WHERE t.service_id = s.id)
    ) INTO has_new;
    IF has_new THEN
        SELECT count(*) INTO new
        FROM (
            SELECT FROM hybrid_monitors.services AS s
            WHERE s.active AND NOT EXISTS (
                SELECT FROM hybrid_monitors.standings AS t WHERE t.service_id = s.id)
            LIMIT most + 1
        ) AS n;
        IF new > most THEN
            INSERT INTO hybrid_monitors.standings AS t
                (service_id, due_at, is_started, host, name, url)
            SELECT
                s.id, hybrid_monitors.moment_of(s.id, s.every, place, looked), false, s.host, s.name,
                s.url
            FROM hybrid_monitors.services AS s
            WHERE s.host = spread_services.host AND s.active
                AND NOT EXISTS (
                    SELECT FROM hybrid_monitors.standings AS t WHERE t.service_id = s.id)
            ON CONFLICT (service_id) DO NOTHING;
            GET DIAGNOSTICS put_off = ROW_COUNT;
        END IF;
    END IF;

    IF EXISTS (
        SELECT FROM hybrid_monitors.standings AS t
        JOIN hybrid_monitors.services AS s ON s.id = t.service_id
        WHERE t.host = spread_services.host AND t.due_at > last_look - interval '5 seconds'
            AND greatest(t.due_at, last_look)
                < looked - least(interval '10 seconds', s.every * 1.4)
    ) THEN
        UPDATE hybrid_monitors.standings AS t
        SET due_at = hybrid_monitors.moment_of(s.id, s.every, place, looked)
        FROM hybrid_monitors.services AS s
        WHERE t.host = spread_services.host AND t.due_at > last_look - interval '5 seconds'
            AND t.due_at <= looked
            -- not one that was put off since its last poll: it would never be polled
            AND t.due_at <= t.polled_at + s.every
            AND s.id = t.service_id AND s.active AND s.host = t.host;
        GET DIAGNOSTICS put_off_again = ROW_COUNT;
    END IF;
    RETURN put_off + put_off_again > 0;
END
$$;
