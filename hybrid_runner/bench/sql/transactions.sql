-- transactions: how many transactions this database has committed.
SELECT d.xact_commit FROM pg_stat_database AS d WHERE d.datname = current_database()
