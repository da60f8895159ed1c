-- applied_migrations: the migrations of this database, in order.
-- odd: the list of an unreleased version has no checksums; as JSON it can be read all the same.
SELECT m.version, m.name, to_jsonb(m) ->> 'checksum' AS checksum FROM hybrid_runner.migrations AS m ORDER BY m.version
