-- send_signal: store a signal; returns its id.
-- $1 text key, $2 jsonb payload
SELECT hybrid_runner.signal($1, $2)
