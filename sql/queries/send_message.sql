-- send_message: notify a channel; false: not sent, for lack of room.
-- $1 text channel, $2 text message
SELECT hybrid_runner.notify_if_room($1, $2)
