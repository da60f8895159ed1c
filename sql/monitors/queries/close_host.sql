-- close_host: whether the job of this host may end in this transaction.
-- $1 text host
SELECT hybrid_monitors.close_host($1)
