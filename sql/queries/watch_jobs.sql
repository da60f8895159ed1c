-- watch_jobs: the state of the awaited jobs; results only of those that have ended.
-- $1 int8[] ids
SELECT id, kind, state::text AS state, progress, errors, result, attempt FROM (
    SELECT j.*, NULL::timestamptz AS finished_at, NULL::jsonb AS result, NULL::bigint[] AS followed_by FROM hybrid_runner.jobs AS j WHERE j.id = ANY ($1)
    UNION ALL
    SELECT a.* FROM hybrid_runner.archived(ARRAY(
        SELECT i.id FROM unnest($1::int8[]) AS i (id) WHERE NOT EXISTS (SELECT FROM hybrid_runner.jobs AS j WHERE j.id = i.id)
    )) AS a
) AS job
