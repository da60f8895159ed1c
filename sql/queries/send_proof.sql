-- send_proof: a notification that this worker's listener must hear; false: not sent, for lack of
--   room.
-- $1 text proof_channel, $2 text message
-- odd: apart from the heartbeat: while the server's queue of notifications is full it is refused,
--   and the worker lives all the same.
SELECT hybrid_runner.notify_if_room($1, $2)
