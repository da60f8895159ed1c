-- get_public_job: what everybody may see of one job, live or archived; what it carries is not read.
-- $1 int8 id
SELECT
    id, queue, kind, priority, run_at, max_attempts, timeout, finish_by, start_by, max_snoozes, max_duration, finish_within, traceparent,
    state::text AS state, attempt, snoozes, began_at, claim, worker_id, started_at, progress, history, version, cancel_requested_at, created_at,
    NULL::timestamptz AS finished_at, NULL::bigint[] AS followed_by, source, schedule, tick
FROM hybrid_runner.jobs
WHERE id = $1
UNION ALL
SELECT
    id, queue, kind, priority, run_at, max_attempts, timeout, finish_by, start_by, max_snoozes, max_duration, finish_within, traceparent,
    state::text AS state, attempt, snoozes, began_at, claim, worker_id, started_at, progress, history, version, cancel_requested_at, created_at,
    finished_at, followed_by, source, schedule, tick
FROM hybrid_runner.archived(ARRAY(
    SELECT i.id FROM unnest(ARRAY[$1]) AS i (id) WHERE NOT EXISTS (SELECT FROM hybrid_runner.jobs AS j WHERE j.id = i.id)
))
