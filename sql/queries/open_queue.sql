-- open_queue: make the queue known, with a doorbell; jobs due later than $2 will not ring.
-- $1 text queue, $2 interval ring_within
SELECT hybrid_runner.open_queue($1, $2)
