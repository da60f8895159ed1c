-- insert_stamp: one job that carries when it was put in.
-- $1 text sent
INSERT INTO hybrid_runner.jobs (queue, kind, payload) VALUES ('bench', 'stamp', $1::text::jsonb)
