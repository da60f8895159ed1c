-- bare_archive: move ended jobs to the archive.
-- $1 int8[] ids
WITH gone AS (
    DELETE FROM hybrid_runner.jobs AS j
    WHERE j.id = ANY ($1)
    RETURNING
        j.id, j.queue, j.kind, j.priority, j.payload, j.run_at, j.attempt, j.snoozes, j.started_at, j.version, j.created_at
)
INSERT INTO hybrid_runner.archive
    (id, queue, kind, priority, payload, run_at, attempt, snoozes, started_at, version, created_at, state, finished_at)
SELECT
    g.id, g.queue, g.kind, g.priority, g.payload, g.run_at, g.attempt, g.snoozes, g.started_at, g.version, g.created_at,
    'completed', clock_timestamp()
FROM gone AS g
