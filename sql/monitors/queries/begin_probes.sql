-- begin_probes: write down that probes are on their way; which of them may begin, NULL: the claim
--   is stale.
-- $1 int8 job_id, $2 int8 claim, $3 int8[] service_ids, $4 timestamptz until
SELECT hybrid_monitors.begin_probes($1, $2, $3, $4) AS begun
