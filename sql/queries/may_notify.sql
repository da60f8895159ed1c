-- may_notify: whether the server's queue of notifications has room, as notify_if_room asks.
SELECT pg_notification_queue_usage() < 0.5
