-- table_blocks: how many blocks an attached table has, or the largest of its partitions.
-- $1 int4 source
SELECT coalesce(max(pg_relation_size(t.oid)) / current_setting('block_size')::int8, 0)::int8 AS blocks
FROM hybrid_runner.sources AS s
CROSS JOIN LATERAL (
    SELECT s.relation UNION ALL SELECT p.relid FROM pg_partition_tree(s.relation) AS p
) AS t (oid)
WHERE s.id = $1
