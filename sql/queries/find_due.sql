-- find_due: the jobs that claim_jobs would take, in its order, without taking them.
-- $1 text queue, $2 text[] kinds, $3 int8 most, $4 timestamptz[] run_ats, $5 int8[] ids,
-- $6 int8[] left_out
-- odd: only what is needed to claim and to name them is read: one of these jobs has something that
--   cannot be.
SELECT
    due.id, due.queue, due.kind, due.priority, NULL AS payload, NULL AS data, NULL AS key, due.run_at, due.max_attempts,
    NULL AS seconds, NULL AS finish_by, NULL AS traceparent, due.attempt + 1 AS attempt, 0 AS claim, now() AS started_at,
    NULL AS created_at, due.snoozes, NULL AS began_at, NULL AS max_snoozes, NULL AS max_duration, NULL AS finish_within,
    NULL AS waits_for, due.source, due.row_key
FROM unnest($4::timestamptz[], $5::int8[]) WITH ORDINALITY AS lane (run_at, id, number)
CROSS JOIN LATERAL (
    SELECT j.id, j.queue, j.kind, j.priority, j.run_at, j.max_attempts, j.attempt, j.snoozes, j.source, j.row_key
    FROM hybrid_runner.jobs AS j
    WHERE j.state = 'queued' AND j.queue = $1 AND j.priority = lane.number - 1
        AND (j.run_at, j.id) > (lane.run_at, lane.id) AND j.run_at <= now() AND j.kind = ANY ($2)
        AND j.id <> ALL ($6)
    ORDER BY j.run_at, j.id
    LIMIT $3
) AS due
ORDER BY due.priority, due.run_at, due.id
LIMIT $3
