-- readers_left: for how many milliseconds more somebody reads event streams; 0: nobody does.
SELECT hybrid_runner.readers_left_ms()
