-- partitions: the archive's first ones, so that jobs can end at once; later ones are made by
-- workers. Needs the functions.
SELECT hybrid_runner.make_archive_partitions()
WHERE NOT EXISTS (SELECT FROM hybrid_runner.archive_partitions AS p WHERE NOT p.is_default);
