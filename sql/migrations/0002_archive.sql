-- why: finished jobs live apart, so the live table stays as small as the backlog; old ones leave by dropping a partition
-- locks: none that matters (creates new objects only)

CREATE TABLE hybrid_runner.archive (
    id bigint NOT NULL,
    queue text NOT NULL,
    kind text NOT NULL,
    priority smallint NOT NULL,
    payload jsonb NOT NULL,
    data jsonb,
    key text,
    run_at timestamptz NOT NULL,
    max_attempts smallint,
    timeout interval,
    finish_by timestamptz,
    traceparent text,
    state hybrid_runner.job_state NOT NULL,
    attempt smallint NOT NULL,
    claim bigint,
    worker_id text,
    started_at timestamptz,
    progress jsonb,
    errors jsonb,
    version integer NOT NULL,
    cancel_requested_at timestamptz,
    created_at timestamptz NOT NULL,
    finished_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    result jsonb,
    PRIMARY KEY (id, finished_at),
    CONSTRAINT archive_states_are_final CHECK (state IN ('completed', 'failed', 'cancelled'))
) PARTITION BY RANGE (finished_at);

-- A safety only: partitions are made ahead, so nothing should land here.
CREATE TABLE hybrid_runner.archive_default PARTITION OF hybrid_runner.archive DEFAULT;

CREATE FUNCTION hybrid_runner.make_archive_partitions(days_ahead integer DEFAULT 7) RETURNS integer
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp SET timezone = 'UTC' SET lock_timeout = '2s'
AS $$
DECLARE
    first_day timestamptz;
    partition text;
    made integer := 0;
BEGIN
    PERFORM pg_advisory_xact_lock(hashtextextended('hybrid_runner.make_archive_partitions', 0));
    FOR first_day IN
        SELECT generate_series(date_trunc('day', now()), date_trunc('day', now()) + make_interval(days => least(days_ahead, 366)), '1 day')
    LOOP
        partition := 'archive_' || to_char(first_day, 'YYYYMMDD');
        CONTINUE WHEN to_regclass('hybrid_runner.' || partition) IS NOT NULL;
        -- ATTACH, not PARTITION OF: it lets others read and write the archive meanwhile.
        LOCK TABLE hybrid_runner.archive_default IN ACCESS EXCLUSIVE MODE;
        EXECUTE format('CREATE TABLE hybrid_runner.%I (LIKE hybrid_runner.archive INCLUDING DEFAULTS INCLUDING CONSTRAINTS)', partition);
        EXECUTE format(
            'WITH strays AS (DELETE FROM hybrid_runner.archive_default WHERE finished_at >= %1$L AND finished_at < %2$L RETURNING *) '
            'INSERT INTO hybrid_runner.%3$I SELECT * FROM strays', first_day, first_day + interval '1 day', partition);
        EXECUTE format(
            'ALTER TABLE hybrid_runner.archive ATTACH PARTITION hybrid_runner.%I FOR VALUES FROM (%L) TO (%L)',
            partition, first_day, first_day + interval '1 day');
        made := made + 1;
    END LOOP;
    RETURN made;
END
$$;

SELECT hybrid_runner.make_archive_partitions();

CREATE VIEW hybrid_runner.all_jobs AS
SELECT
    id, queue, kind, priority, payload, data, key, run_at, max_attempts, timeout, finish_by, traceparent, state, attempt,
    claim, worker_id, started_at, progress, errors, version, cancel_requested_at, created_at,
    NULL::timestamptz AS finished_at, NULL::jsonb AS result
FROM hybrid_runner.jobs
UNION ALL
SELECT
    id, queue, kind, priority, payload, data, key, run_at, max_attempts, timeout, finish_by, traceparent, state, attempt,
    claim, worker_id, started_at, progress, errors, version, cancel_requested_at, created_at,
    finished_at, result
FROM hybrid_runner.archive;
