-- unknown_kinds: kinds of which jobs have been due for longer than `due_for` and that no live
-- worker of their queue knows; for a queue without live workers, that no live worker knows at all.
-- `elsewhere`: live workers of other queues know it. `meant`: a declared kind that looks like it.
-- Claims pass such jobs over, so they are found where lanes begin: so many are read there, and
-- at the lanes' ends, that a call stays cheap. `due` is how many of these are of the kind, and
-- `oldest_due` how many seconds ago the first one was due.
CREATE OR REPLACE FUNCTION hybrid_runner.unknown_kinds(
    due_for interval DEFAULT '1 minute', most integer DEFAULT 100
) RETURNS TABLE (
    queue text, kind text, due bigint, oldest_due double precision, elsewhere boolean, meant text
)
LANGUAGE plpgsql SECURITY DEFINER
-- Its plans must be the same for any table, as those of claims.
SET search_path = pg_catalog, pg_temp SET plan_cache_mode = 'force_generic_plan'
SET enable_seqscan = off SET enable_bitmapscan = off SET jit = off
AS $$
#variable_conflict use_column
DECLARE
    queues text[];
    known text[];
    per_lane integer;
    until timestamptz := clock_timestamp() - unknown_kinds.due_for;
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
    named AS (
        SELECT n.name
        FROM (
            -- Queues that workers opened come first: whoever may insert can make up others.
            SELECT q.name, true AS is_open FROM hybrid_runner.queues AS q
            WHERE EXISTS (
                SELECT FROM hybrid_runner.jobs AS j WHERE j.state = 'queued' AND j.queue = q.name
            )
            UNION ALL
            SELECT s.name, false
            FROM (SELECT seen.name FROM seen WHERE seen.name IS NOT NULL LIMIT 10000) AS s
            WHERE NOT EXISTS (SELECT FROM hybrid_runner.queues AS q WHERE q.name = s.name)
        ) AS n
        ORDER BY NOT n.is_open, n.name LIMIT 1000
    )
    SELECT array_agg(n.name) INTO queues FROM named AS n;
    IF queues IS NULL THEN
        RETURN;
    END IF;
    per_lane := greatest(10, least(1000, 20000 / cardinality(queues)));
    SELECT coalesce(array_agg(DISTINCT k.name), '{}') INTO known
    FROM hybrid_runner.workers AS w CROSS JOIN LATERAL unnest(w.kinds) AS k (name)
    WHERE w.dead_at IS NULL AND w.heartbeat_at + w.lease > clock_timestamp();

    RETURN QUERY
    WITH alive AS MATERIALIZED (
        SELECT w.queues, w.kinds FROM hybrid_runner.workers AS w
        WHERE w.dead_at IS NULL AND w.heartbeat_at + w.lease > clock_timestamp()
    ),
    served AS MATERIALIZED (
        SELECT name.queue, array_agg(DISTINCT k.name) FILTER (WHERE k.name IS NOT NULL) AS kinds
        FROM (
            SELECT DISTINCT e.key AS queue, a.kinds
            FROM alive AS a CROSS JOIN LATERAL jsonb_each(a.queues) AS e
        ) AS name
        LEFT JOIN LATERAL unnest(name.kinds) AS k (name) ON true
        GROUP BY name.queue
    ),
    waiting AS (
        SELECT n.name AS queue, job.kind, job.run_at
        FROM unnest(queues) AS n (name)
        CROSS JOIN generate_series(0, 9) AS lane (priority)
        CROSS JOIN LATERAL (
            (SELECT j.id, j.kind, j.run_at FROM hybrid_runner.jobs AS j
            WHERE j.state = 'queued' AND j.queue = n.name AND j.priority = lane.priority
                AND j.run_at <= until
            ORDER BY j.run_at, j.id LIMIT per_lane)
            UNION
            (SELECT j.id, j.kind, j.run_at FROM hybrid_runner.jobs AS j
            WHERE j.state = 'queued' AND j.queue = n.name AND j.priority = lane.priority
                AND j.run_at <= until
            ORDER BY j.run_at DESC, j.id DESC LIMIT per_lane / 10)
        ) AS job
    ),
    kinds AS (
        SELECT w.queue, w.kind, count(*) AS due, min(w.run_at) AS since
        FROM waiting AS w GROUP BY w.queue, w.kind
    )
    SELECT
        k.queue, k.kind, k.due, extract(epoch FROM clock_timestamp() - k.since)::float8,
        k.kind = ANY (known), hybrid_runner.similar_kind(k.kind)
    FROM kinds AS k
    LEFT JOIN served AS s ON s.queue = k.queue
    WHERE k.kind <> ALL (CASE WHEN s.queue IS NULL THEN known ELSE coalesce(s.kinds, '{}') END)
    ORDER BY k.due DESC, k.queue, k.kind
    LIMIT unknown_kinds.most;
END
$$;
