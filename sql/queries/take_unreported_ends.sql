-- take_unreported_ends: jobs that ended without a worker, as claims, for one worker to report;
--   nobody is given them for a minute.
-- $1 int8 most, $2 bool reasons
-- odd: without $2 no errors are read: one of them may be damaged.
-- odd: those that were retried or forgotten meanwhile are taken too, and bring a row with an id
--   alone. Payload and data are not needed, and may be large.
WITH taken AS (
    UPDATE hybrid_runner.unreported_ends AS e SET taken_at = now()
    WHERE e.id IN (
        SELECT due.id FROM hybrid_runner.unreported_ends AS due
        WHERE due.taken_at IS NULL -- as ask_news.sql has it
            OR due.taken_at NOT BETWEEN clock_timestamp() - interval '1 minute' AND clock_timestamp() + interval '1 second'
        ORDER BY due.id
        LIMIT $1
        FOR UPDATE SKIP LOCKED
    )
    RETURNING e.id, e.taken_at
)
SELECT
    t.taken_at, t.id, a.queue, a.kind, a.priority, '' AS payload, NULL AS data, a.key, a.run_at, a.max_attempts,
    date_part('epoch', a.timeout) AS seconds, a.finish_by, a.traceparent, a.attempt, coalesce(a.claim, 0) AS claim,
    coalesce(a.started_at, a.run_at) AS started_at, a.created_at, a.snoozes,
    a.began_at, a.max_snoozes, date_part('epoch', a.max_duration) AS max_duration,
    date_part('epoch', a.finish_within) AS finish_within, a.waits_for, a.source, a.row_key, a.schedule,
    CASE WHEN a.tick BETWEEN '1970-01-01 UTC' AND '9999-01-01 UTC' THEN a.tick END AS tick, a.start_by,
    a.state::text AS state, a.finished_at, CASE WHEN $2 THEN (a.errors -> -1)::text END AS error
FROM taken AS t
LEFT JOIN hybrid_runner.archive AS a ON a.id = t.id
