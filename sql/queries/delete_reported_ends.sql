-- delete_reported_ends: the ends that were taken at that time have been reported.
-- $1 int8[] ids, $2 timestamptz taken_at
-- odd: a job that was retried and cancelled again meanwhile stays: its new end was not among them.
DELETE FROM hybrid_runner.unreported_ends AS e WHERE e.id = ANY ($1) AND e.taken_at = $2
