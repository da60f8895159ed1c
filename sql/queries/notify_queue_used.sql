-- notify_queue_used: the share of the server's queue of notifications that is full.
SELECT pg_notification_queue_usage()
