-- leave_gauges: the next heartbeat of anybody is given the measuring of the queues.
-- $1 text holder
UPDATE hybrid_runner.chores AS c SET taken_at = '-infinity', holder = NULL WHERE c.name = 'gauges' AND c.holder = $1
