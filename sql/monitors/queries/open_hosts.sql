-- open_hosts: store the jobs of hosts that have something to do and no job; how many.
-- $1 text[] hosts
-- odd: NULL is all hosts.
SELECT hybrid_monitors.open_hosts($1) AS opened
