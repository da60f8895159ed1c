-- queue_depths: how many jobs each queue has in each state, counted up to `most` and estimated
-- beyond; `most` shrinks when queues are many, so that a call stays cheap.
-- Queues that a living worker serves come first, then others that were opened, then up to 100 that
-- nobody has opened: whoever may insert can make up names, and must not crowd out the others.
-- `one_queue`: of this queue alone. `of_known_kinds`: where workers live, count how many due jobs
-- are of kinds that they know, among those that come first and last where there are many.
CREATE OR REPLACE FUNCTION hybrid_runner.queue_depths(
    most integer DEFAULT 10000, with_scheduled boolean DEFAULT true, one_queue text DEFAULT NULL,
    of_known_kinds boolean DEFAULT false
) RETURNS TABLE (
    queue text, due bigint, scheduled bigint, running bigint, oldest_due double precision,
    paused boolean, workers bigint, slots bigint, opened boolean, due_of_known_kinds bigint
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
    kinds text[];
    enough integer;
    sampled bigint;
    -- Between two counts time passes, and between two calls too: what lies on the border is in one
    -- of them.
    border timestamptz := clock_timestamp();
BEGIN
    IF queue_depths.one_queue IS NOT NULL THEN
        names := ARRAY[queue_depths.one_queue];
        IF NOT EXISTS (SELECT FROM hybrid_runner.queues AS q WHERE q.name = queue_depths.one_queue)
            AND NOT EXISTS (SELECT FROM hybrid_runner.jobs AS j
                WHERE j.state = 'queued' AND j.queue = queue_depths.one_queue) THEN
            RETURN;
        END IF;
    ELSE
        WITH RECURSIVE seen (name) AS (
            (SELECT j.queue FROM hybrid_runner.jobs AS j WHERE j.state = 'queued'
                ORDER BY j.queue LIMIT 1)
            UNION ALL
            SELECT (SELECT j.queue FROM hybrid_runner.jobs AS j
                WHERE j.state = 'queued' AND j.queue > s.name ORDER BY j.queue LIMIT 1)
            FROM seen AS s
            WHERE s.name IS NOT NULL
        ),
        served AS MATERIALIZED (
            SELECT DISTINCT k.name
            FROM hybrid_runner.workers AS w
            CROSS JOIN LATERAL jsonb_object_keys(w.queues) AS k (name)
            WHERE w.dead_at IS NULL AND w.heartbeat_at + w.lease > clock_timestamp()
        ),
        opened AS (
            SELECT q.name, s.name IS NULL AS unserved
            FROM hybrid_runner.queues AS q
            LEFT JOIN served AS s ON s.name = q.name
            ORDER BY s.name IS NULL, q.name LIMIT 10000
        ),
        invented AS (
            -- Nobody has opened them, so nobody works on them; any producer can make them up.
            SELECT s.name
            FROM (SELECT seen.name FROM seen WHERE seen.name IS NOT NULL LIMIT 10000) AS s
            WHERE NOT EXISTS (SELECT FROM hybrid_runner.queues AS q WHERE q.name = s.name)
            LIMIT 100
        )
        SELECT array_agg(n.name ORDER BY n.rank, n.name) INTO names
        FROM (
            SELECT o.name, o.unserved::int AS rank FROM opened AS o
            UNION ALL
            SELECT i.name, 2 FROM invented AS i
        ) AS n;
    END IF;
    enough := least(most, greatest(1000, 100000 / greatest(1, coalesce(cardinality(names), 1))));
    IF queue_depths.of_known_kinds THEN
        SELECT array_agg(DISTINCT k.name) INTO kinds
        FROM hybrid_runner.workers AS w
        CROSS JOIN LATERAL unnest(w.kinds) AS k (name)
        WHERE w.dead_at IS NULL AND w.heartbeat_at + w.lease > clock_timestamp();
    END IF;

    FOR one IN
        WITH alive AS MATERIALIZED (
            SELECT w.queues, w.running FROM hybrid_runner.workers AS w
            WHERE w.dead_at IS NULL AND w.heartbeat_at + w.lease > clock_timestamp()
        ),
        served AS (
            SELECT e.key AS name, count(*) AS workers, sum(e.value::bigint)::bigint AS slots
            FROM alive AS a CROSS JOIN LATERAL jsonb_each(a.queues) AS e
            GROUP BY e.key
        ),
        busy AS (
            SELECT e.key AS name, sum(e.value::bigint)::bigint AS running
            FROM alive AS a CROSS JOIN LATERAL jsonb_each(a.running) AS e
            GROUP BY e.key
        )
        SELECT
            n.name, q.paused_at IS NOT NULL AS paused, q.name IS NOT NULL AS opened,
            coalesce(s.workers, 0) AS workers, coalesce(s.slots, 0) AS slots,
            coalesce(b.running, 0) AS running
        FROM unnest(names) WITH ORDINALITY AS n (name, place)
        LEFT JOIN hybrid_runner.queues AS q ON q.name = n.name
        LEFT JOIN served AS s ON s.name = n.name
        LEFT JOIN busy AS b ON b.name = n.name
        ORDER BY n.place
    LOOP
        queue := one.name;
        opened := one.opened;
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

        due_of_known_kinds := due;
        IF kinds IS NOT NULL AND workers > 0 AND due > 0 THEN
            SELECT count(*), count(*) FILTER (WHERE sample.kind = ANY (kinds))
            INTO sampled, due_of_known_kinds
            FROM generate_series(0, 9) AS lane (priority)
            CROSS JOIN LATERAL (
                (SELECT j.id, j.kind FROM hybrid_runner.jobs AS j
                WHERE j.state = 'queued' AND j.queue = one.name AND j.priority = lane.priority
                    AND j.run_at <= border
                ORDER BY j.run_at, j.id LIMIT enough / 10)
                UNION
                (SELECT j.id, j.kind FROM hybrid_runner.jobs AS j
                WHERE j.state = 'queued' AND j.queue = one.name AND j.priority = lane.priority
                    AND j.run_at <= border
                ORDER BY j.run_at DESC, j.id DESC LIMIT enough / 10)
            ) AS sample;
            -- Where most are known, the rest is like them; where few are, only those count.
            IF due_of_known_kinds * 2 >= sampled THEN
                due_of_known_kinds := due * due_of_known_kinds / greatest(1, sampled);
            END IF;
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
