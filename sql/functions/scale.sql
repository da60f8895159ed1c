-- scale: for autoscalers: how many workers a queue could use now. Where nobody works, a worker is
-- taken to have `usual_slots`. While workers live, jobs that more of them would not run want none:
-- those of unknown kinds in their queues, and those in queues that nobody has opened, unless one of
-- these is asked for by name.
CREATE OR REPLACE FUNCTION hybrid_runner.scale(
    queue text DEFAULT NULL, usual_slots integer DEFAULT 200
) RETURNS TABLE (
    queue_name text, backlog bigint, running bigint, slots bigint, workers bigint, wanted bigint
)
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
    SELECT
        f.queue, f.due, f.running, f.slots, f.workers,
        -- A paused queue needs the workers whose jobs still run, and no more.
        least(1000, ceil(
            (CASE
                WHEN f.paused THEN 0
                WHEN scale.queue IS NULL AND NOT f.opened AND EXISTS (
                    SELECT FROM hybrid_runner.workers AS w
                    WHERE w.dead_at IS NULL AND w.heartbeat_at + w.lease > clock_timestamp()
                ) THEN 0
                ELSE f.due_of_known_kinds
            END + f.running)
            / CASE WHEN f.slots > 0 THEN f.slots::numeric / f.workers
                ELSE greatest(1, scale.usual_slots) END))::bigint
    FROM hybrid_runner.queue_depths(
        with_scheduled => false, one_queue => scale.queue, of_known_kinds => true
    ) AS f
$$;
