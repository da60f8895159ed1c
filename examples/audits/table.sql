-- The application's own table, as it was before any worker of ours. What it says of stalled rows and
-- of attempts was the work of a home-made worker.
CREATE SCHEMA IF NOT EXISTS site_analysis;

CREATE TABLE IF NOT EXISTS site_analysis.audits (
    id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    requested_email text NOT NULL,
    website_url text NOT NULL,
    status text NOT NULL DEFAULT 'pending'
        CHECK (status IN ('pending', 'processing', 'completed', 'failed', 'stalled')),
    raw_data jsonb,
    report_pdf_url text,
    errors jsonb,
    processing_started_at timestamptz,
    processing_worker_id text,
    last_heartbeat timestamptz,
    processing_completed_at timestamptz,
    retry_count integer,
    created_at timestamptz NOT NULL DEFAULT now()
);

-- Row-level security is on, and no policy lets a worker in: the site's login may insert and look.
ALTER TABLE site_analysis.audits ENABLE ROW LEVEL SECURITY;
DO $$
BEGIN
    IF to_regrole('site_form') IS NULL THEN
        CREATE ROLE site_form NOLOGIN;
    END IF;
END
$$;
GRANT USAGE ON SCHEMA site_analysis TO site_form;
GRANT INSERT (id, requested_email, website_url), SELECT ON site_analysis.audits TO site_form;
DROP POLICY IF EXISTS form ON site_analysis.audits;
CREATE POLICY form ON site_analysis.audits TO site_form USING (true) WITH CHECK (status = 'pending');
