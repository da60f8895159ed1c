-- leave_sleepers: this session sleeps on no queue.
-- odd: on the listener's session alone. When it begins, too: an earlier one may have had its
--   number.
SELECT hybrid_runner.leave_sleepers()
