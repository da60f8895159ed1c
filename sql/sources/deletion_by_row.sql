-- deletion_by_row: the triggers that note which rows of a partitioned table are gone.
CREATE TRIGGER hybrid_runner_<<number>>_delete AFTER DELETE ON <<relation>>
FOR EACH ROW EXECUTE FUNCTION hybrid_runner.<<prefix>>_deleted();

CREATE TRIGGER hybrid_runner_<<number>>_truncate AFTER TRUNCATE ON <<relation>>
FOR EACH STATEMENT EXECUTE FUNCTION hybrid_runner.<<prefix>>_truncated();
