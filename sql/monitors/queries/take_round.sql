-- take_round: what a round has to do, as JSON; NULL: its claim is stale.
-- $1 text host, $2 int8 job_id, $3 int8 claim, $4 int4 most, $5 int8[] known_ids,
-- $6 xid[] known_versions, $7 xid[] known_standings
SELECT hybrid_monitors.take_round($1, $2, $3, $4, $5, $6, $7)::text AS taken
