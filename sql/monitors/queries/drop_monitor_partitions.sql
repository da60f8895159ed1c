-- drop_monitor_partitions: drop partitions of which nothing is kept any more; what was done to
--   which.
SELECT d.what, d.partition FROM hybrid_monitors.drop_partitions() AS d
