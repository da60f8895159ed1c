-- claim_jobs: take due jobs of one queue, urgent lanes first, oldest first within a lane, behind
--   each lane's frontier.
-- $1 text queue, $2 text[] kinds, $3 int8 slots, $4 text worker_id, $5 int4[] max_attempts,
-- $6 interval[] timeouts,
-- $7 timestamptz[] run_ats, $8 int8[] ids, $9 int8 claim, $10 bool[] ceilings, $11 int8[] left_out,
-- $12 int4 most_bytes
-- odd: where $10 says so, $5 and $6 are ceilings of what the job itself says (least() ignores
--   NULLs), elsewhere what counts if it says nothing.
-- odd: the lanes are walked in order by a nested loop that stops at $3, so nothing is locked past
--   the limit.
-- odd: payload and data of a job that has more than $12 bytes of both do not come with it:
--   read_payload is for these, one at a time.
-- odd: one row comes in any case, with the time of the look; its id is NULL when nothing was
--   claimed, the time when it is paused.
WITH paused AS MATERIALIZED (
    SELECT FROM hybrid_runner.queues AS q WHERE q.name = $1 AND q.paused_at IS NOT NULL
),
picked AS MATERIALIZED (
    SELECT due.id
    FROM unnest($7::timestamptz[], $8::int8[]) WITH ORDINALITY AS lane (run_at, id, number)
    CROSS JOIN LATERAL (
        SELECT j.id
        FROM hybrid_runner.jobs AS j
        WHERE j.state = 'queued' AND j.queue = $1 AND j.priority = lane.number - 1
            AND (j.run_at, j.id) > (lane.run_at, lane.id) AND j.run_at <= now() AND j.kind = ANY ($2)
            AND j.id <> ALL ($11)
        ORDER BY j.run_at, j.id
        LIMIT $3
        FOR UPDATE OF j SKIP LOCKED
    ) AS due
    WHERE NOT EXISTS (SELECT FROM paused)
    LIMIT $3
),
claimed AS (
    UPDATE hybrid_runner.jobs AS j SET
        state = 'running',
        attempt = j.attempt + 1,
        claim = $9, -- one a batch: with the id it is unique
        worker_id = $4,
        started_at = now(),
        version = j.version + 1,
        -- what the handler declares is written down, so that others can apply it without knowing
        -- the kind
        max_attempts = CASE WHEN ($10::bool[])[array_position($2, j.kind)]
            THEN least(j.max_attempts, ($5::int4[])[array_position($2, j.kind)])
            ELSE coalesce(j.max_attempts, ($5::int4[])[array_position($2, j.kind)]) END,
        timeout = CASE WHEN ($10::bool[])[array_position($2, j.kind)]
            THEN least(j.timeout, ($6::interval[])[array_position($2, j.kind)])
            ELSE coalesce(j.timeout, ($6::interval[])[array_position($2, j.kind)]) END
    WHERE j.id = ANY (ARRAY(SELECT id FROM picked))
    RETURNING
        j.id, j.queue, j.kind, j.priority,
        -- Printed once, and only what is not large already in storage.
        CASE WHEN pg_column_size(j.payload) + coalesce(pg_column_size(j.data), 0) <= $12 THEN j.payload::text END AS payload,
        CASE WHEN pg_column_size(j.payload) + coalesce(pg_column_size(j.data), 0) <= $12 THEN j.data::text END AS data,
        j.key, j.run_at, j.max_attempts, j.timeout, j.finish_by,
        j.traceparent, j.attempt, j.claim, j.created_at, j.snoozes,
        j.began_at, j.max_snoozes, j.max_duration, j.finish_within, j.waits_for,
        j.source, j.row_key, j.schedule, j.tick, j.start_by
)
SELECT
    c.id, c.queue, c.kind, c.priority,
    CASE WHEN octet_length(c.payload) + coalesce(octet_length(c.data), 0) <= $12 THEN c.payload END AS payload,
    CASE WHEN octet_length(c.payload) + coalesce(octet_length(c.data), 0) <= $12 THEN c.data END AS data, c.key, c.run_at, c.max_attempts,
    date_part('epoch', c.timeout) AS seconds, c.finish_by, c.traceparent,
    c.attempt, c.claim, CASE WHEN NOT EXISTS (SELECT FROM paused) THEN now() END AS looked_at, c.created_at, c.snoozes,
    c.began_at, c.max_snoozes, date_part('epoch', c.max_duration) AS max_duration,
    date_part('epoch', c.finish_within) AS finish_within, c.waits_for, c.source, c.row_key,
    c.schedule, c.tick, c.start_by
FROM (SELECT 1) AS look
LEFT JOIN claimed AS c ON true
ORDER BY c.priority, c.run_at, c.id
