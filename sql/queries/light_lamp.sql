-- light_lamp: somebody reads how jobs move, for so many milliseconds from now; workers that listen are told.
-- $1 int4 milliseconds
SELECT
    setval('hybrid_runner.lamp', (extract(epoch FROM clock_timestamp()) * 1000)::bigint + $1::int4) AS until,
    pg_notify('hybrid_runner.~lamp', $1::int4::text) AS told
