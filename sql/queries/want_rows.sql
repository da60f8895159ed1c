-- want_rows: store jobs for rows of an attached table that are wanted and have none; how many.
-- $1 int4 source, $2 int4 most, $3 int8 first_block, $4 int8 blocks
-- odd: blocks that are NULL are all.
SELECT hybrid_runner.want_rows($1, $2, $3, $4) AS made
