-- hosts_with_work: the hosts that have something to poll or to stop.
-- odd: the reconciler of rounds runs it, and stores a job for each that has none.
SELECT s.host FROM hybrid_monitors.services AS s WHERE s.active
UNION
SELECT t.host FROM hybrid_monitors.standings AS t
