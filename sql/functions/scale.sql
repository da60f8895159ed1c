-- scale: for autoscalers: how many workers a queue could use now. Where nobody works, a worker is
-- taken to have `usual_slots`.
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
            (CASE WHEN f.paused THEN 0 ELSE f.due END + f.running)
            / CASE WHEN f.slots > 0 THEN f.slots::numeric / f.workers
                ELSE greatest(1, scale.usual_slots) END))::bigint
    FROM hybrid_runner.queue_depths(with_scheduled => false) AS f
    WHERE scale.queue IS NULL OR f.queue = scale.queue
$$;
