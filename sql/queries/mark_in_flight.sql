-- mark_in_flight: a number above every transaction in flight; asked after the bell was opened, so
--   above every muted insert.
-- odd: it takes a number of its own. A snapshot would not do: it leaves out transactions that are
--   newer than the last one that ended.
SELECT pg_current_xact_id()::text::int8
