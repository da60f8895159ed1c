-- take_round: what a round has to do, as JSON; NULL: its claim is stale.
-- $1 text host, $2 int8 job_id, $3 int8 claim, $4 int4 most, $5 text known_ids,
-- $6 text known_versions, $7 text known_standings
-- odd: arrays of many numbers come as text, which costs the worker a quarter.
SELECT hybrid_monitors.take_round(
    $1, $2, $3, $4, $5::text::int8[], $6::text::xid[], $7::text::xid[]
)::text AS taken
