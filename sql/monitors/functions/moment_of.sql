-- moment_of: when a service is polled that was put off: at one of the moments at which its host's
-- are gathered (gathered() in policy/monitor_rounds.py), so that it need not be moved there later.
-- Its phase says at which; `place` is that of its host among all. Short intervals are not gathered.
CREATE OR REPLACE FUNCTION hybrid_monitors.moment_of(
    id bigint, every interval, place double precision, looked timestamptz
) RETURNS timestamptz
LANGUAGE plpgsql IMMUTABLE SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    phase CONSTANT double precision := hybrid_monitors.phase_of(id);
    parts CONSTANT double precision := ceil(extract(epoch FROM every) / 30);
    apart CONSTANT double precision := extract(epoch FROM every) / parts;
    since double precision := extract(epoch FROM looked - timestamptz '2000-01-01 00:00:00+00');
BEGIN
    IF apart <= 5 THEN
        RETURN looked + every * phase;
    END IF;
    since := since - apart * place;
    RETURN looked + make_interval(
        secs => apart * (ceil(since / apart) + floor(phase * parts)) - since);
END
$$;
