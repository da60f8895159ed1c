-- wal: bytes of write-ahead log so far.
SELECT (pg_current_wal_insert_lsn() - '0/0')::float8
