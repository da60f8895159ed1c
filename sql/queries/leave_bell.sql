-- leave_bell: tell the queue's workers that one of them ends; if it may have muted the bell, open
--   it and ring for help.
-- $1 text queue, $2 text worker_id, $3 bool is_muted
SELECT hybrid_runner.leave_bell($1, $2, $3)
