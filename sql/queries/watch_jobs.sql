-- watch_jobs: the state of the awaited jobs; results only of those that have ended.
-- $1 int8[] ids
SELECT id, kind, state::text AS state, progress, errors, result, attempt FROM hybrid_runner.all_jobs WHERE id = ANY ($1)
