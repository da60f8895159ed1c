-- announce_readers: somebody reads event streams for so many milliseconds from now; workers that
--   listen are notified.
-- $1 int4 milliseconds
SELECT
    setval('hybrid_runner.stream_readers_until', (extract(epoch FROM clock_timestamp()) * 1000)::bigint + $1::int4) AS until,
    hybrid_runner.notify_if_room('hybrid_runner.~readers', $1::int4::text) AS notified
