-- list_kinds: all kinds that workers have declared, and how many live workers of its queue know
--   each.
SELECT
    k.name, k.queue, k.on_end, k.max_snoozes, k.max_duration, k.finish_within, k.payload_schema::text AS payload_schema, k.seen_at,
    (
        SELECT count(*) FROM hybrid_runner.workers AS w
        WHERE w.dead_at IS NULL AND w.heartbeat_at + w.lease > clock_timestamp()
            AND k.name = ANY (w.kinds) AND jsonb_exists(w.queues, k.queue)
    )::int4 AS workers
FROM hybrid_runner.kinds AS k
ORDER BY k.name
LIMIT 10000
