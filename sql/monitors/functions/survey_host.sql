-- survey_host: one look over all services of a host that are not on their way: which are due, those
-- that are asked for first and then those that were polled longest ago, and when the next one is;
-- how many have no standing here, and how many have; and whether any came due while nobody polled.
CREATE OR REPLACE FUNCTION hybrid_monitors.survey_host(
    host text, on_its_way bigint[], last_look timestamptz, looked timestamptz,
    OUT due bigint[], OUT next_due timestamptz, OUT new integer, OUT here integer, OUT is_late boolean
)
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp
-- Both tables have an index by host: a hash of the one is half as dear as two hundred look-ups.
SET enable_hashjoin = true SET enable_nestloop = off
AS $$
#variable_conflict use_column
DECLARE
    asked bigint[] := '{}';
BEGIN
    IF EXISTS (SELECT FROM hybrid_monitors.asked) THEN
        asked := ARRAY(
            SELECT a.service_id FROM hybrid_monitors.asked AS a
            WHERE EXISTS (
                SELECT FROM hybrid_monitors.services AS s
                WHERE s.id = a.service_id AND s.host = survey_host.host));
    END IF;
    SELECT
        array_agg(n.id ORDER BY n.is_asked DESC, n.polled_at NULLS FIRST, n.id)
            FILTER (WHERE n.due <= looked AND n.is_free),
        min(n.due) FILTER (WHERE n.due > looked AND n.is_free),
        count(*) FILTER (WHERE n.is_new), count(*) FILTER (WHERE NOT n.is_new),
        coalesce(bool_or(n.is_late), false)
    INTO survey_host.due, survey_host.next_due, survey_host.new, survey_host.here, survey_host.is_late
    FROM (
        SELECT
            s.id, t.polled_at, t.service_id IS NULL AS is_new, a.id IS NOT NULL AS is_asked,
            s.id <> ALL (on_its_way) AS is_free,
            -- What came due in the last seconds before that look waited for the next one.
            t.due_at > last_look - interval '5 seconds'
                AND greatest(t.due_at, last_look)
                    < looked - least(interval '10 seconds', s.every * 1.4) AS is_late,
            CASE WHEN t.url = s.url AND a.id IS NULL THEN t.due_at ELSE '-infinity' END AS due
        FROM hybrid_monitors.services AS s
        LEFT JOIN hybrid_monitors.standings AS t
            ON t.service_id = s.id AND t.host = survey_host.host
        LEFT JOIN unnest(asked) AS a (id) ON a.id = s.id
        WHERE s.host = survey_host.host AND s.active
    ) AS n;
END
$$;
