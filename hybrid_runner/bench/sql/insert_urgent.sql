-- insert_urgent: the same, before all others.
-- $1 text sent
INSERT INTO hybrid_runner.jobs (queue, kind, priority, payload) VALUES ('bench', 'stamp', 0, $1::text::jsonb)
