-- scale: how many workers each queue, or one, could use.
-- $1 text queue, $2 int4 usual_slots
SELECT s.queue_name, s.backlog, s.running, s.slots, s.workers, s.wanted
FROM hybrid_runner.scale($1, $2) AS s
