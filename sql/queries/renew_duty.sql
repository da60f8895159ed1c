-- renew_duty: go on doing a duty that one worker holds; no row: somebody else does it by now.
-- $1 text name, $2 text holder
UPDATE hybrid_runner.duties AS d SET taken_at = clock_timestamp() WHERE d.name = $1 AND d.holder = $2 RETURNING d.name
