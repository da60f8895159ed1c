-- triggers: the triggers that store jobs.
-- INSERT by statement, which is cheaper in bulk; UPDATE by row and only if it concerns us: other
-- updates pay next to nothing.
CREATE TRIGGER hybrid_runner_<<number>>_insert AFTER INSERT ON <<relation>>
REFERENCING NEW TABLE AS inserted
FOR EACH STATEMENT EXECUTE FUNCTION hybrid_runner.<<prefix>>_inserted();

-- By row, and only if it concerns us: other updates pay next to nothing.
CREATE TRIGGER hybrid_runner_<<number>>_update AFTER UPDATE ON <<relation>>
FOR EACH ROW WHEN (<<concerns_us>>)
EXECUTE FUNCTION hybrid_runner.<<prefix>>_updated();
