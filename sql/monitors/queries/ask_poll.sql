-- ask_poll: ask for a poll of a service now; returns its id.
-- $1 text name
SELECT hybrid_monitors.ask_poll($1) AS service_id
