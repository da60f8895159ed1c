-- take_round: what a round has to do, as JSON; NULL: its claim is stale.
-- $1 text host, $2 int8 job_id, $3 int8 claim, $4 int4 most
SELECT hybrid_monitors.take_round($1, $2, $3, $4)::text AS taken
