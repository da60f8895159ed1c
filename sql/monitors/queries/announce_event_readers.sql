-- announce_event_readers: somebody reads events for so many milliseconds from now: good polls are
--   stored meanwhile.
-- $1 int4 milliseconds
SELECT
    setval('hybrid_monitors.event_readers_until', (extract(epoch FROM clock_timestamp()) * 1000)::bigint + $1::int4) AS until
