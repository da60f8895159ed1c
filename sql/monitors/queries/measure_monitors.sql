-- measure_monitors: how monitors do as a whole, for metrics and health.
-- odd: a service without a standing was never polled: it is late since it was made. Who has changed
--   its address, or woken it up, is waited for by nobody, so 10 s are no delay.
SELECT
    count(*) FILTER (WHERE m.breaker = 'closed')::int4 AS closed,
    count(*) FILTER (WHERE m.breaker = 'open')::int4 AS open,
    count(*) FILTER (WHERE m.breaker = 'half_open')::int4 AS half_open,
    count(*) FILTER (WHERE m.is_down)::int4 AS down,
    count(*) FILTER (WHERE m.is_warned)::int4 AS warned,
    count(*) FILTER (WHERE m.late > interval '10 s')::int4 AS late,
    coalesce(
        extract(epoch FROM max(m.late) FILTER (WHERE m.late > interval '10 s')), 0
    )::float8 AS oldest_late,
    (
        SELECT greatest(extract(epoch FROM now() - u.ended_at), 0)::float8 FROM hybrid_monitors.upkeep_runs AS u
    ) AS upkeep_age
FROM (
    SELECT
        coalesce(st.breaker, 'closed') AS breaker, coalesce(st.is_down, false) AS is_down,
        coalesce(st.warnings <> '[]', false) AS is_warned,
        now() - coalesce(st.due_at, s.created_at) AS late
    FROM hybrid_monitors.services AS s
    LEFT JOIN hybrid_monitors.standings AS st ON st.service_id = s.id
    WHERE s.active
) AS m
