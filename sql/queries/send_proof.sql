-- send_proof: a notification that this worker's listener must hear, if it listens.
-- $1 text proof_channel, $2 text message
-- odd: apart from the heartbeat: while the server's queue of notifications is full it is refused,
--   and the worker lives all the same.
-- odd: whoever asks for the queue's usage makes the server forget what all have read; otherwise a
--   queue that was full once takes nothing for ever.
SELECT CASE WHEN $1::text IS NOT NULL THEN pg_notify($1, $2) END AS sent FROM pg_notification_queue_usage()
