-- stream_readers: for how many milliseconds more somebody reads event streams, 0: nobody does; and
--   the channel on which they hear of changes.
SELECT hybrid_runner.readers_left_ms() AS left_ms, hybrid_runner.changes_channel() AS channel
