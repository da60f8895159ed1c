-- try_row: write into one wanted row of an attached table that its job runs; says what was done, or
--   NULL: no row is wanted. For a transaction that is rolled back.
-- $1 int4 source
SELECT w.outcome
FROM hybrid_runner.rows_of_source($1, 'wanted without job', '{}', 1) AS r
CROSS JOIN LATERAL hybrid_runner.write_rows(
    $1, ARRAY[-1::int8], ARRAY[r.row_key], ARRAY['running'], ARRAY[false], ARRAY[0], NULL, NULL, NULL, NULL, NULL
) AS w
