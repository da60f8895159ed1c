-- amend_job: change a queued job if it is still at the version named; says amended, stale,
--   running, finished or unknown.
-- $1 int8 id, $2 int4 version, $3 text payload, $4 int4 priority, $5 timestamptz run_at,
-- $6 text data
SELECT hybrid_runner.amend($1, $2, $3::text::jsonb, $4, $5, $6::text::jsonb)
