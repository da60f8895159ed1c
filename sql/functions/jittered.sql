-- jittered: when the job of a tick is due: later by a share of the jitter that is the same whenever
-- and by whomever it is asked for.
CREATE OR REPLACE FUNCTION hybrid_runner.jittered(
    name text, tick timestamptz, jitter interval
) RETURNS timestamptz
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    IF jitter = interval '0' THEN
        RETURN tick;
    END IF;
    RETURN tick + make_interval(secs => floor(1000 * date_part('epoch', jitter) * (
        ('x' || encode(substr(sha256(convert_to(
            name || ' ' || extract(epoch FROM tick)::numeric(20, 6)::text, 'UTF8')), 1, 6), 'hex'))::bit(48)::bigint
        / 281474976710656.0::float8)) / 1000);
END
$$;
