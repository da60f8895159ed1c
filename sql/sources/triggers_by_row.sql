-- triggers_by_row: the triggers that store jobs, of a table that is partitioned or inherits.
-- Those by statement would not fire for what is written by way of another table.
CREATE TRIGGER hybrid_runner_<<number>>_insert AFTER INSERT ON <<relation>>
FOR EACH ROW WHEN (<<concerns_us_at_once>>)
EXECUTE FUNCTION hybrid_runner.<<prefix>>_inserted();

CREATE TRIGGER hybrid_runner_<<number>>_update AFTER UPDATE ON <<relation>>
FOR EACH ROW WHEN (<<concerns_us>>)
EXECUTE FUNCTION hybrid_runner.<<prefix>>_updated();
