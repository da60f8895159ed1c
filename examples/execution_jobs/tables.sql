-- The application's own tables, as they were before any worker of ours: nothing here knows of jobs.
CREATE SCHEMA IF NOT EXISTS browser_tests;
GRANT USAGE ON SCHEMA browser_tests TO anon, authenticated, service_role;

-- Who asks, as PostgREST says it; on Supabase this is auth.uid().
CREATE OR REPLACE FUNCTION browser_tests.user_id() RETURNS uuid LANGUAGE sql STABLE
RETURN (nullif(current_setting('request.jwt.claims', true), '')::jsonb ->> 'sub')::uuid;

CREATE TABLE IF NOT EXISTS browser_tests.recordings (
    id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    user_id uuid NOT NULL DEFAULT browser_tests.user_id(),
    name text NOT NULL CHECK (length(name) BETWEEN 1 AND 200),
    steps jsonb NOT NULL CHECK (jsonb_typeof(steps) = 'array'),
    created_at timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE IF NOT EXISTS browser_tests.execution_jobs (
    id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    recording_id uuid NOT NULL REFERENCES browser_tests.recordings ON DELETE CASCADE,
    status text NOT NULL DEFAULT 'queued'
        CHECK (status IN ('queued', 'running', 'completed', 'failed', 'cancelled')),
    csv_data jsonb NOT NULL CHECK (jsonb_typeof(csv_data) = 'array'),
    config jsonb NOT NULL DEFAULT '{}',
    total_rows integer NOT NULL DEFAULT 0,
    completed_rows integer NOT NULL DEFAULT 0,
    worker_id text,
    error_message text,
    version integer NOT NULL DEFAULT 1,
    started_at timestamptz,
    completed_at timestamptz,
    created_at timestamptz NOT NULL DEFAULT now(),
    updated_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX IF NOT EXISTS execution_jobs_by_status
    ON browser_tests.execution_jobs (status, created_at);
CREATE INDEX IF NOT EXISTS execution_jobs_by_recording
    ON browser_tests.execution_jobs (recording_id);

CREATE TABLE IF NOT EXISTS browser_tests.execution_results (
    execution_job_id uuid NOT NULL REFERENCES browser_tests.execution_jobs ON DELETE CASCADE,
    row_number integer NOT NULL,
    is_passed boolean NOT NULL,
    message text,
    created_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (execution_job_id, row_number)
);

-- updated_at is the time of the last change, whoever made it.
CREATE OR REPLACE FUNCTION browser_tests.touch() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.updated_at := clock_timestamp();
    RETURN NEW;
END
$$;
CREATE OR REPLACE TRIGGER touch BEFORE UPDATE ON browser_tests.execution_jobs
    FOR EACH ROW EXECUTE FUNCTION browser_tests.touch();

-- Each result counts; the last one completes its execution. Nobody is asked.
CREATE OR REPLACE FUNCTION browser_tests.count_result() RETURNS trigger LANGUAGE plpgsql
SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    UPDATE browser_tests.execution_jobs AS e SET completed_rows = e.completed_rows + 1
    WHERE e.id = NEW.execution_job_id;
    UPDATE browser_tests.execution_jobs AS e
    SET status = 'completed', completed_at = clock_timestamp(), error_message = NULL
    WHERE e.id = NEW.execution_job_id AND e.status = 'running'
        AND e.completed_rows >= e.total_rows;
    RETURN NULL;
END
$$;
CREATE OR REPLACE TRIGGER count_result AFTER INSERT ON browser_tests.execution_results
    FOR EACH ROW EXECUTE FUNCTION browser_tests.count_result();

-- Everybody sees and changes what is his own; service_role, which passes by such rules, everything.
ALTER TABLE browser_tests.recordings ENABLE ROW LEVEL SECURITY;
ALTER TABLE browser_tests.execution_jobs ENABLE ROW LEVEL SECURITY;
ALTER TABLE browser_tests.execution_results ENABLE ROW LEVEL SECURITY;
DROP POLICY IF EXISTS own ON browser_tests.recordings;
CREATE POLICY own ON browser_tests.recordings TO authenticated
    USING (user_id = browser_tests.user_id());
DROP POLICY IF EXISTS own ON browser_tests.execution_jobs;
CREATE POLICY own ON browser_tests.execution_jobs TO authenticated
    USING (recording_id IN (SELECT r.id FROM browser_tests.recordings AS r));
DROP POLICY IF EXISTS own ON browser_tests.execution_results;
CREATE POLICY own ON browser_tests.execution_results TO authenticated
    USING (execution_job_id IN (SELECT e.id FROM browser_tests.execution_jobs AS e));
GRANT SELECT, INSERT, UPDATE, DELETE ON browser_tests.recordings, browser_tests.execution_jobs
    TO authenticated, service_role;
GRANT SELECT, DELETE ON browser_tests.execution_results TO authenticated;
GRANT SELECT, INSERT, UPDATE, DELETE ON browser_tests.execution_results TO service_role;
