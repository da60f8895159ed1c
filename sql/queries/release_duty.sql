-- release_duty: the next heartbeat of anybody is given this duty.
-- $1 text name, $2 text holder
UPDATE hybrid_runner.duties AS d SET taken_at = '-infinity', holder = NULL WHERE d.name = $1 AND d.holder = $2
