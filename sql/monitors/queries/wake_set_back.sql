-- wake_set_back: wake the rounds that wait for a time that was soon before Postgres's clock was set
--   back; how many.
SELECT hybrid_monitors.wake_set_back()
