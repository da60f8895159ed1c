-- make_archive_partitions: have the archive's partitions ready ahead of time; returns how many
--   were made.
-- $1 int4 days_ahead
SELECT hybrid_runner.make_archive_partitions($1)
