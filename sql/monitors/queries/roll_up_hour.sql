-- roll_up_hour: sum the oldest hour of latencies up that was not summed up yet; false: there is
--   none.
SELECT hybrid_monitors.roll_up_hour() AS rolled_up
