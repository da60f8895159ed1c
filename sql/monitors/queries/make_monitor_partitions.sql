-- make_monitor_partitions: have partitions ready ahead of time; how many were made.
SELECT hybrid_monitors.make_partitions() AS made
