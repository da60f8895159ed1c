-- job_snapshots: the state of these jobs, live or archived, without payloads, results and errors.
-- $1 int8[] ids, $2 bool with_progress
-- odd: an end stores 1,000 follow-ups and a clean-up at most; what stands there of another shape,
--   somebody with a worker's login has written.
SELECT
    j.id, j.queue, j.kind, j.state::text AS state, j.version, j.priority, j.attempt, j.snoozes, j.max_attempts, j.run_at, j.worker_id,
    j.started_at, j.finished_at, CASE WHEN $2 THEN j.progress END AS progress, j.cancel_requested_at, j.created_at,
    CASE WHEN j.followed_by IS NOT NULL THEN
        ARRAY(SELECT f.id FROM unnest(j.followed_by) AS f (id) WHERE f.id IS NOT NULL LIMIT 1001) END AS followed_by
FROM (
    SELECT j.*, NULL::timestamptz AS finished_at, NULL::jsonb AS result, NULL::bigint[] AS followed_by FROM hybrid_runner.jobs AS j WHERE j.id = ANY ($1)
    UNION ALL
    SELECT a.* FROM hybrid_runner.archived(ARRAY(
        SELECT i.id FROM unnest($1::int8[]) AS i (id) WHERE NOT EXISTS (SELECT FROM hybrid_runner.jobs AS j WHERE j.id = i.id)
    )) AS a
) AS j
