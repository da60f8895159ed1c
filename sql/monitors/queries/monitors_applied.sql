-- monitors_applied: the migrations of monitors that this database has, the newest last.
SELECT version, name, checksum FROM hybrid_monitors.migrations ORDER BY version
