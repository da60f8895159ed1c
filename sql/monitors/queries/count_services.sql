-- count_services: how many services are in each state.
SELECT o.state, count(*)::int4 AS services FROM hybrid_monitors.overview AS o GROUP BY o.state
