-- upkeep_ended: write down that upkeep has ended.
SELECT hybrid_monitors.upkeep_ended() AS ended_at
