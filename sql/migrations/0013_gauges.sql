-- why: how deep each queue is, for dashboards and autoscalers: measured by one worker at a time, and by whoever asks to scale
-- locks: ACCESS EXCLUSIVE on workers and chores for a moment; they have a row per worker and per chore

-- What the worker ran at its last heartbeat, by queue: the table of jobs has no index of what runs, and must not.
ALTER TABLE hybrid_runner.workers ADD COLUMN running jsonb NOT NULL DEFAULT '{}';

-- Who was given the chore. The holder of 'gauges' renews taken_at, so nobody else is given it while that one lives.
ALTER TABLE hybrid_runner.chores ADD COLUMN holder text;
INSERT INTO hybrid_runner.chores (name, pause) VALUES ('gauges', '30 seconds');

-- The planner's guess at how many rows a query has: from statistics and the size of the table, without reading it.
CREATE FUNCTION hybrid_runner.estimate(query text) RETURNS bigint
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    plan json;
BEGIN
    EXECUTE 'EXPLAIN (FORMAT JSON) ' || query INTO plan;
    RETURN (plan -> 0 -> 'Plan' ->> 'Plan Rows')::numeric::bigint;
END
$$;

-- Counted up to `most` a queue, estimated beyond; `most` shrinks when queues are many, so that a call stays cheap.
CREATE FUNCTION hybrid_runner.queue_figures(most integer DEFAULT 10000, with_scheduled boolean DEFAULT true) RETURNS TABLE (
    queue text, due bigint, scheduled bigint, running bigint, oldest_due double precision, paused boolean,
    workers bigint, slots bigint
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
    -- Between two counts time passes, and between two calls too: what lies on the border is in one of them.
    border timestamptz := clock_timestamp();
BEGIN
    WITH RECURSIVE seen (name) AS (
        (SELECT j.queue FROM hybrid_runner.jobs AS j WHERE j.state = 'queued' ORDER BY j.queue LIMIT 1)
        UNION ALL
        SELECT (SELECT j.queue FROM hybrid_runner.jobs AS j WHERE j.state = 'queued' AND j.queue > s.name ORDER BY j.queue LIMIT 1)
        FROM seen AS s
        WHERE s.name IS NOT NULL
    ),
    known (name) AS (
        -- Nobody opened those of the table of jobs alone: then nobody works on them.
        SELECT q.name FROM hybrid_runner.queues AS q
        UNION
        (SELECT s.name FROM seen AS s WHERE s.name IS NOT NULL LIMIT 1000)
    )
    SELECT array_agg(k.name ORDER BY k.name) INTO names FROM (SELECT known.name FROM known LIMIT 1000) AS k;
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
            WHERE j.state = 'queued' AND j.queue = one.name AND j.priority = lane.priority AND j.run_at <= border
            ORDER BY j.run_at LIMIT 1
        ) AS first;
        oldest_due := coalesce(oldest_due, 0);

        SELECT count(*) INTO due FROM (
            SELECT FROM generate_series(0, 9) AS lane (priority)
            CROSS JOIN LATERAL (
                SELECT FROM hybrid_runner.jobs AS j
                WHERE j.state = 'queued' AND j.queue = one.name AND j.priority = lane.priority AND j.run_at <= border
                LIMIT enough
            ) AS one_of_them
            LIMIT enough
        ) AS counted;
        IF due = enough THEN
            due := greatest(due, hybrid_runner.estimate(format(
                'SELECT FROM hybrid_runner.jobs WHERE state = ''queued'' AND queue = %L AND run_at <= %L', one.name, border)));
        END IF;

        scheduled := NULL;
        IF with_scheduled THEN
            SELECT count(*) INTO scheduled FROM (
                SELECT FROM generate_series(0, 9) AS lane (priority)
                CROSS JOIN LATERAL (
                    SELECT FROM hybrid_runner.jobs AS j
                    WHERE j.state = 'queued' AND j.queue = one.name AND j.priority = lane.priority AND j.run_at > border
                    LIMIT enough
                ) AS one_of_them
                LIMIT enough
            ) AS counted;
            IF scheduled = enough THEN
                scheduled := greatest(scheduled, hybrid_runner.estimate(format(
                    'SELECT FROM hybrid_runner.jobs WHERE state = ''queued'' AND queue = %L AND run_at > %L', one.name, border)));
            END IF;
        END IF;
        RETURN NEXT;
    END LOOP;
END
$$;

-- For autoscalers: how many workers a queue could use now. Where nobody works, a worker is taken to have `usual_slots`.
CREATE FUNCTION hybrid_runner.scale(queue text DEFAULT NULL, usual_slots integer DEFAULT 200) RETURNS TABLE (
    queue_name text, backlog bigint, running bigint, slots bigint, workers bigint, wanted bigint
)
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
    SELECT
        f.queue, f.due, f.running, f.slots, f.workers,
        -- A paused queue keeps those that still run; more would not help it.
        least(1000, ceil(
            (CASE WHEN f.paused THEN 0 ELSE f.due END + f.running)
            / CASE WHEN f.slots > 0 THEN f.slots::numeric / f.workers ELSE greatest(1, scale.usual_slots) END))::bigint
    FROM hybrid_runner.queue_figures(with_scheduled => false) AS f
    WHERE scale.queue IS NULL OR f.queue = scale.queue
$$;

-- For how long somebody has kept vacuum from cleaning up, in seconds. Slots and standbys say a transaction's number alone: what
-- `growth` notes every ten minutes says how old that is.
CREATE FUNCTION hybrid_runner.horizon_age() RETURNS double precision
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
    SELECT coalesce(greatest(0, extract(epoch FROM clock_timestamp() - min(held.since))), 0)::double precision
    FROM (
        SELECT a.xact_start AS since
        FROM pg_stat_activity AS a
        WHERE a.datname = current_database() AND a.backend_type = 'client backend'
            AND (a.backend_xmin IS NOT NULL OR a.backend_xid IS NOT NULL) AND a.pid <> pg_backend_pid()
        UNION ALL
        SELECT p.prepared FROM pg_prepared_xacts AS p WHERE p.database = current_database()
        UNION ALL
        SELECT min(h.looked_at)
        FROM hybrid_runner.horizons AS h
        JOIN (
            SELECT s.xmin::text::bigint AS id FROM pg_replication_slots AS s
            UNION ALL
            SELECT s.catalog_xmin::text::bigint FROM pg_replication_slots AS s
            UNION ALL
            SELECT r.backend_xmin::text::bigint FROM pg_stat_replication AS r
        ) AS kept ON ((h.next_transaction - kept.id) & 4294967295) BETWEEN 1 AND 2147483647
    ) AS held (since)
$$;
