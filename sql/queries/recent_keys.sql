-- recent_keys: the keys of the newest signals, if they were sent lately.
-- $1 interval within, $2 int8 most
SELECT DISTINCT r.key
FROM (
    SELECT s.key, s.sent_at FROM hybrid_runner.signals AS s
    ORDER BY s.id DESC
    LIMIT $2
) AS r
WHERE r.sent_at > clock_timestamp() - $1::interval
