-- views: what the owner of the table may do with jobs, row_changes and late_rows: this source's,
-- and no more.
CREATE OR REPLACE VIEW hybrid_runner.<<prefix>>_jobs AS
SELECT j.id, j.source, j.row_key, j.kind, j.queue, j.priority, j.run_at, j.payload, j.state
FROM hybrid_runner.jobs AS j
WHERE j.source = <<number>>;
ALTER VIEW hybrid_runner.<<prefix>>_jobs ALTER COLUMN source SET DEFAULT <<number>>;
ALTER VIEW hybrid_runner.<<prefix>>_jobs ALTER COLUMN kind SET DEFAULT <<kind>>;
ALTER VIEW hybrid_runner.<<prefix>>_jobs ALTER COLUMN queue SET DEFAULT <<queue>>;

CREATE OR REPLACE VIEW hybrid_runner.<<prefix>>_changes AS
SELECT c.source, c.row_key, c.what
FROM hybrid_runner.row_changes AS c
WHERE c.source = <<number>>;
ALTER VIEW hybrid_runner.<<prefix>>_changes ALTER COLUMN source SET DEFAULT <<number>>;

CREATE OR REPLACE VIEW hybrid_runner.<<prefix>>_late AS
SELECT l.row_key
FROM hybrid_runner.late_rows AS l
WHERE l.source = <<number>>;

GRANT USAGE ON SCHEMA hybrid_runner TO <<owner>>;
GRANT EXECUTE ON FUNCTION hybrid_runner.row_verdict TO <<owner>>;
GRANT INSERT (row_key, priority, run_at, payload), SELECT (row_key, state)
    ON hybrid_runner.<<prefix>>_jobs TO <<owner>>;
GRANT INSERT (row_key, what) ON hybrid_runner.<<prefix>>_changes TO <<owner>>;
GRANT SELECT (row_key) ON hybrid_runner.<<prefix>>_late TO <<owner>>;
