-- applied_migrations: the newest migration of this database, 0 before the first.
SELECT coalesce(max(version), 0)::int4 AS version FROM hybrid_runner.migrations
