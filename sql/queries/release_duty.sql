-- release_duty: the next heartbeat of anybody is given this duty.
-- $1 text name, $2 text holder
-- odd: rows of attached tables are to be looked after at once: the others send a heartbeat now.
WITH released AS (
    UPDATE hybrid_runner.duties AS d SET taken_at = '-infinity', holder = NULL
    WHERE d.name = $1 AND d.holder = $2
    RETURNING d.name
)
SELECT hybrid_runner.notify_if_room('hybrid_runner.~sources', 'sources') AS told FROM released AS r WHERE r.name = 'sources'
