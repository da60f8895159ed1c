-- read_rows: rows of an attached table as JSON, until they are so many bytes together; of the
--   others the sizes.
-- $1 int4 source, $2 text[] keys, $3 int8 most_bytes
SELECT
    r.row_key,
    CASE WHEN sum(octet_length(r.fresh)) OVER (ROWS UNBOUNDED PRECEDING) <= $3 THEN r.fresh END AS payload,
    r.size
FROM hybrid_runner.rows_of_source($1, 'read', $2, NULL) AS r
