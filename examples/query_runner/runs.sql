-- The application's own table: what its users see. The jobs keep it up to date.
CREATE SCHEMA IF NOT EXISTS query_runner;

CREATE TABLE IF NOT EXISTS query_runner.runs (
    id uuid PRIMARY KEY,
    job_id bigint NOT NULL,
    sql text NOT NULL CHECK (length(sql) BETWEEN 1 AND 10000),
    status text NOT NULL DEFAULT 'queued'
        CHECK (status IN ('queued', 'running', 'ready', 'failed', 'canceled')),
    task_id text,
    row_count bigint,
    found_by text,
    message text,
    created_at timestamptz NOT NULL DEFAULT now(),
    started_at timestamptz,
    ended_at timestamptz,
    cleaned_at timestamptz
);

-- What the reconcilers of app.py look for.
CREATE INDEX IF NOT EXISTS runs_unfinished ON query_runner.runs (started_at)
    WHERE status = 'running';
CREATE INDEX IF NOT EXISTS runs_uncleaned ON query_runner.runs (ended_at)
    WHERE cleaned_at IS NULL;
