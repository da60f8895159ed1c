-- roll_up_hour: sum up the oldest hour of latencies that was not summed up yet; false: there is
-- none that is over. One that was, and comes once more, is summed up anew. Until when that was done
-- is written down in the same transaction, so nothing counts twice. An hour is left alone for two
-- minutes, in which rounds of it may still commit.
CREATE OR REPLACE FUNCTION hybrid_monitors.roll_up_hour() RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET timezone = 'UTC'
AS $$
#variable_conflict use_column
DECLARE
    bounds CONSTANT integer[] := hybrid_monitors.latency_bounds();
    until timestamptz;
    oldest timestamptz;
BEGIN
    -- Two at once: the other one does it.
    SELECT r.rolled_up_until INTO until FROM hybrid_monitors.upkeep_runs AS r FOR UPDATE SKIP LOCKED;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    -- Postgres's clock was forward and is set back: these hours come once more.
    IF until > now() THEN
        until := date_trunc('hour', now());
    END IF;
    SELECT date_trunc('hour', min(l.at)) INTO oldest FROM hybrid_monitors.latencies AS l
    WHERE l.at >= coalesce(until, '-infinity');
    -- Hours in which nobody polled are passed over.
    oldest := coalesce(oldest, greatest(until, date_trunc('hour', now() - interval '2 minutes')));
    IF oldest + interval '1 hour' > now() - interval '2 minutes' THEN
        UPDATE hybrid_monitors.upkeep_runs AS r SET rolled_up_until = oldest
        WHERE r.rolled_up_until IS DISTINCT FROM oldest;
        RETURN false;
    END IF;
    INSERT INTO hybrid_monitors.hours AS h (hour, dependency_id, answers, sum_ms, max_ms, buckets)
    SELECT
        oldest, b.dependency_id, sum(b.answers), sum(b.sum_ms), max(b.max_ms),
        ARRAY(
            SELECT coalesce((jsonb_object_agg(b.bucket, b.answers) ->> n.place::text)::integer, 0)
            FROM generate_series(0, cardinality(bounds)) AS n (place)
            ORDER BY n.place
        )
    FROM (
        SELECT
            u.dependency_id, width_bucket(u.ms, c.lower) AS bucket,
            count(*)::integer AS answers, sum(u.ms) AS sum_ms, max(u.ms) AS max_ms
        FROM hybrid_monitors.latencies AS l
        CROSS JOIN LATERAL unnest(l.dependency_ids, l.milliseconds) AS u (dependency_id, ms)
        -- a bucket holds its upper bound: its lower one is one more than that of the one before
        CROSS JOIN (SELECT ARRAY(SELECT i.bound + 1 FROM unnest(bounds) AS i (bound))) AS c (lower)
        WHERE l.at >= oldest AND l.at < oldest + interval '1 hour'
        GROUP BY u.dependency_id, 2
    ) AS b
    GROUP BY b.dependency_id
    ON CONFLICT (dependency_id, hour) DO UPDATE SET
        answers = excluded.answers, sum_ms = excluded.sum_ms, max_ms = excluded.max_ms,
        buckets = excluded.buckets;
    UPDATE hybrid_monitors.upkeep_runs AS r SET rolled_up_until = oldest + interval '1 hour';
    RETURN true;
END
$$;
