-- declare_kinds: write down what this worker says of the kinds that it knows.
-- $1 text[] names, $2 text[] queues, $3 text[] on_ends, $4 int4[] max_snoozes,
-- $5 interval[] max_durations,
-- $6 interval[] finish_withins, $7 text[] payload_schemas
-- odd: in order, so that workers that start together do not wait for each other in a circle.
-- odd: a worker that says nothing of on_end takes nothing away while others live that know the
--   kind: its code may be older than theirs.
-- odd: what stands there already is not even locked, unless an hour has passed: a hundred
--   processes that start together write it once, and whoever holds a row holds up no start.
WITH declared AS MATERIALIZED (
    SELECT d.name, d.queue, d.on_end, d.max_snoozes, d.max_duration, d.finish_within, d.payload_schema::jsonb AS payload_schema
    FROM unnest($1::text[], $2::text[], $3::text[], $4::int4[], $5::interval[], $6::interval[], $7::text[])
        AS d (name, queue, on_end, max_snoozes, max_duration, finish_within, payload_schema)
)
INSERT INTO hybrid_runner.kinds AS known (name, queue, on_end, max_snoozes, max_duration, finish_within, payload_schema)
SELECT d.name, d.queue, d.on_end, d.max_snoozes, d.max_duration, d.finish_within, d.payload_schema
FROM declared AS d
LEFT JOIN hybrid_runner.kinds AS k ON k.name = d.name
WHERE (k.queue, k.on_end, k.max_snoozes, k.max_duration, k.finish_within, k.payload_schema)
    IS DISTINCT FROM (d.queue, d.on_end, d.max_snoozes, d.max_duration, d.finish_within, d.payload_schema)
    OR k.seen_at NOT BETWEEN clock_timestamp() - interval '1 hour' AND clock_timestamp()
ORDER BY d.name
ON CONFLICT (name) DO UPDATE SET
    queue = excluded.queue,
    on_end = CASE
        WHEN excluded.on_end IS NULL AND EXISTS (
            SELECT FROM hybrid_runner.workers AS w
            WHERE excluded.name = ANY (w.kinds) AND w.dead_at IS NULL AND w.heartbeat_at + w.lease > clock_timestamp()
        ) THEN known.on_end
        ELSE excluded.on_end
    END,
    max_snoozes = excluded.max_snoozes, max_duration = excluded.max_duration,
    finish_within = excluded.finish_within, payload_schema = excluded.payload_schema, seen_at = excluded.seen_at
