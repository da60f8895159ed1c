-- queue_depths: how many jobs each queue has in each state, counted up to `most` and estimated
-- beyond; `most` shrinks when queues are many, so that a call stays cheap.
CREATE OR REPLACE FUNCTION hybrid_runner.queue_depths(
    most integer DEFAULT 10000, with_scheduled boolean DEFAULT true
) RETURNS TABLE (
    queue text, due bigint, scheduled bigint, running bigint, oldest_due double precision,
    paused boolean, workers bigint, slots bigint
)
LANGUAGE plpgsql SECURITY DEFINER
-- Its plans must be the same for any table, as those of claims.
SET search_path = pg_catalog, pg_temp SET plan_cache_mode = 'force_generic_plan'
SET enable_seqscan = off SET enable_bitmapscan = off SET jit = off
AS $$
#variable_conflict use_column
DECLARE
    one record;
    names text[];
    enough integer;
    -- Between two counts time passes, and between two calls too: what lies on the border is in one
    -- of them.
    border timestamptz := clock_timestamp();
BEGIN
    WITH RECURSIVE seen (name) AS (
        (SELECT j.queue FROM hybrid_runner.jobs AS j WHERE j.state = 'queued'
            ORDER BY j.queue LIMIT 1)
        UNION ALL
        SELECT (SELECT j.queue FROM hybrid_runner.jobs AS j
            WHERE j.state = 'queued' AND j.queue > s.name ORDER BY j.queue LIMIT 1)
        FROM seen AS s
        WHERE s.name IS NOT NULL
    ),
    known (name) AS (
        -- Nobody opened those of the table of jobs alone: then nobody works on them.
        SELECT q.name FROM hybrid_runner.queues AS q
        UNION
        (SELECT s.name FROM seen AS s WHERE s.name IS NOT NULL LIMIT 1000)
    )
    SELECT array_agg(k.name ORDER BY k.name) INTO names
    FROM (SELECT known.name FROM known LIMIT 1000) AS k;
    enough := least(most, greatest(1000, 100000 / greatest(1, coalesce(cardinality(names), 1))));

    FOR one IN
        SELECT n.name, q.paused_at IS NOT NULL AS paused, w.workers, w.slots, w.running
        FROM unnest(names) AS n (name)
        LEFT JOIN hybrid_runner.queues AS q ON q.name = n.name
        CROSS JOIN LATERAL (
            SELECT
                count(*) FILTER (WHERE a.queues ? n.name) AS workers,
                coalesce(sum((a.queues ->> n.name)::bigint), 0)::bigint AS slots,
                coalesce(sum((a.running ->> n.name)::bigint), 0)::bigint AS running
            FROM hybrid_runner.workers AS a
            WHERE a.dead_at IS NULL AND a.heartbeat_at + a.lease > clock_timestamp()
        ) AS w
        ORDER BY n.name
    LOOP
        queue := one.name;
        paused := one.paused;
        workers := one.workers;
        slots := one.slots;
        running := one.running;

        SELECT greatest(0, extract(epoch FROM border - min(first.run_at))) INTO oldest_due
        FROM generate_series(0, 9) AS lane (priority)
        CROSS JOIN LATERAL (
            SELECT j.run_at FROM hybrid_runner.jobs AS j
            WHERE j.state = 'queued' AND j.queue = one.name AND j.priority = lane.priority
                AND j.run_at <= border
            ORDER BY j.run_at LIMIT 1
        ) AS first;
        oldest_due := coalesce(oldest_due, 0);

        SELECT count(*) INTO due FROM (
            SELECT FROM generate_series(0, 9) AS lane (priority)
            CROSS JOIN LATERAL (
                SELECT FROM hybrid_runner.jobs AS j
                WHERE j.state = 'queued' AND j.queue = one.name AND j.priority = lane.priority
                    AND j.run_at <= border
                LIMIT enough
            ) AS one_of_them
            LIMIT enough
        ) AS counted;
        IF due = enough THEN
            due := greatest(due, hybrid_runner.estimate(format(
                'SELECT FROM hybrid_runner.jobs WHERE state = ''queued'' AND queue = %L '
                'AND run_at <= %L', one.name, border)));
        END IF;

        scheduled := NULL;
        IF with_scheduled THEN
            SELECT count(*) INTO scheduled FROM (
                SELECT FROM generate_series(0, 9) AS lane (priority)
                CROSS JOIN LATERAL (
                    SELECT FROM hybrid_runner.jobs AS j
                    WHERE j.state = 'queued' AND j.queue = one.name AND j.priority = lane.priority
                        AND j.run_at > border
                    LIMIT enough
                ) AS one_of_them
                LIMIT enough
            ) AS counted;
            IF scheduled = enough THEN
                scheduled := greatest(scheduled, hybrid_runner.estimate(format(
                    'SELECT FROM hybrid_runner.jobs WHERE state = ''queued'' AND queue = %L '
                    'AND run_at > %L', one.name, border)));
            END IF;
        END IF;
        RETURN NEXT;
    END LOOP;
END
$$;
