-- deletion: the triggers that note which rows are gone.
CREATE TRIGGER hybrid_runner_<<number>>_delete AFTER DELETE ON <<relation>>
REFERENCING OLD TABLE AS deleted
FOR EACH STATEMENT EXECUTE FUNCTION hybrid_runner.<<prefix>>_deleted();

CREATE TRIGGER hybrid_runner_<<number>>_truncate AFTER TRUNCATE ON <<relation>>
FOR EACH STATEMENT EXECUTE FUNCTION hybrid_runner.<<prefix>>_truncated();
