-- forget_source: take a source out of the list, with what was left of it; false if it was attached
--   again meanwhile.
-- $1 int4 source
WITH gone AS (
    DELETE FROM hybrid_runner.sources AS s WHERE s.id = $1 AND s.detaching_at IS NOT NULL
    RETURNING s.id
),
late AS (DELETE FROM hybrid_runner.late_rows AS l USING gone AS g WHERE l.source = g.id),
changes AS (DELETE FROM hybrid_runner.row_changes AS c USING gone AS g WHERE c.source = g.id)
SELECT EXISTS (SELECT FROM gone) AS is_gone
