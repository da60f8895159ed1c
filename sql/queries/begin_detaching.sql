-- begin_detaching: nothing of this source is repaired or claimed anew from now on; since when.
-- $1 int4 source
UPDATE hybrid_runner.sources AS s SET detaching_at = coalesce(s.detaching_at, clock_timestamp())
WHERE s.id = $1
RETURNING s.detaching_at
