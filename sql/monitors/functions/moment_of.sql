-- moment_of: when a service that is put off is polled: at one of the moments of the coming interval
-- at which its host's services are polled together, as policy/monitor_rounds.py has them; where
-- these would be less than five seconds apart, at a place of its own.
CREATE OR REPLACE FUNCTION hybrid_monitors.moment_of(
    job_id bigint, id bigint, every interval, looked timestamptz
) RETURNS timestamptz
LANGUAGE sql STABLE STRICT SET search_path = pg_catalog, pg_temp
AS $$
    SELECT CASE
        WHEN m.apart <= 5 THEN looked + every * hybrid_monitors.phase_of(id)
        ELSE looked + make_interval(secs => (
            m.apart - mod(m.at - m.apart * m.place, m.apart)
            + m.apart * floor(m.parts * hybrid_monitors.phase_of(id)::numeric)
        )::double precision)
    END
    FROM (
        SELECT
            n.parts, round(extract(epoch FROM every) / n.parts, 6) AS apart,
            extract(epoch FROM looked - timestamptz '2000-01-01 00:00+00') AS at,
            -- the golden ratio's share of 2^64
            mod(job_id * 11400714819323198485, 18446744073709551616) / 18446744073709551616 AS place
        FROM (SELECT greatest(2, ceil(extract(epoch FROM every) / 15)) AS parts) AS n
    ) AS m
$$;
