-- find_expired: jobs of one kind that wait although their time has been over for a while, by
--   finish_by or by max_duration, their own or that of their kind.
-- $1 text kind, $2 int8 after_id, $3 interval past, $4 int8 most, $5 bool reasons
-- odd: so many rows are read at most, and last_id is where to go on; NULL when there are no more.
--   A row comes in any case; its id is NULL when none was found.
-- odd: budgets are added as seconds, ten years at most, to times that are none of the far future:
--   whoever may insert can write an interval whose months reach far and whose days lead back.
-- odd: least() and greatest() ignore NULLs.
-- odd: without $5 no errors are read: one of them may be damaged.
WITH read AS MATERIALIZED (
    SELECT
        j.id, j.queue, j.kind, j.priority, j.key, j.run_at, j.finish_by, j.traceparent, j.attempt, j.created_at, j.snoozes, j.version,
        CASE WHEN j.began_at BETWEEN '1970-01-01 UTC' AND '9999-01-01 UTC' THEN j.began_at END AS began_at,
        CASE WHEN coalesce(j.max_duration, k.max_duration) IS NOT NULL THEN
            least(315576000, greatest(0, date_part('epoch', coalesce(j.max_duration, k.max_duration)))) END AS max_duration,
        CASE WHEN coalesce(j.finish_within, k.finish_within) IS NOT NULL THEN
            least(315576000, greatest(0, date_part('epoch', coalesce(j.finish_within, k.finish_within)))) END AS finish_within
    FROM hybrid_runner.jobs AS j
    LEFT JOIN hybrid_runner.kinds AS k ON k.name = $1
    WHERE j.state = 'queued' AND (j.began_at IS NOT NULL OR j.finish_by IS NOT NULL OR j.finish_within IS NOT NULL)
        AND j.kind = $1 AND j.id > $2
    ORDER BY j.kind, j.id
    LIMIT $4
),
bounded AS (
    SELECT
        r.*, r.began_at + make_interval(secs => r.max_duration) AS used_up_at,
        coalesce(r.finish_by, coalesce(r.began_at, r.run_at) + make_interval(secs => r.finish_within)) AS finished_by
    FROM read AS r
),
expired AS (
    SELECT b.* FROM bounded AS b
    WHERE b.used_up_at <= clock_timestamp() - $3::interval OR b.finished_by <= clock_timestamp() - $3::interval
)
SELECT
    (SELECT max(r.id) FROM read AS r HAVING count(*) = $4) AS last_id,
    o.id, o.queue, o.kind, o.priority, o.key, o.run_at, o.finished_by, o.traceparent, o.attempt, o.created_at, o.snoozes, o.began_at,
    o.max_duration, o.version, clock_timestamp() AS found_at,
    CASE WHEN $5 THEN (SELECT left(j.errors -> -1 ->> 'message', 500) FROM hybrid_runner.jobs AS j WHERE j.id = o.id) END AS reason
FROM (SELECT 1) AS look
LEFT JOIN expired AS o ON true
ORDER BY o.id
