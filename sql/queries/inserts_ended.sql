-- inserts_ended: whether all transactions below a number have ended.
-- $1 int8 below
SELECT pg_snapshot_xmin(pg_current_snapshot())::text::int8 >= $1
