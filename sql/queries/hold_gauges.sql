-- hold_gauges: go on being the one who measures the queues; no row: somebody else is by now.
-- $1 text holder
UPDATE hybrid_runner.chores AS c SET taken_at = clock_timestamp() WHERE c.name = 'gauges' AND c.holder = $1 RETURNING c.name
