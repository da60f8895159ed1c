"""Health polling of many services by the fleet: one recurring job for each host."""
