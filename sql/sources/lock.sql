-- lock: comes before the triggers of a table are dropped: as its owner, the table first and its
-- partitions behind it, as applications lock them. DROP alone begins with the partitions.
DO <<quote>>
DECLARE
    attached record;
BEGIN
    SELECT c.oid::pg_catalog.regclass AS name, pg_catalog.pg_get_userbyid(c.relowner) AS owner INTO attached
    FROM hybrid_runner.sources AS s
    JOIN pg_catalog.pg_class AS c ON c.oid = s.relation
    WHERE s.id = <<number>> AND EXISTS (
        SELECT FROM pg_catalog.pg_trigger AS t
        WHERE t.tgrelid = c.oid AND pg_catalog.starts_with(t.tgname::text, 'hybrid_runner_<<number>>_')
    );
    IF FOUND THEN
        EXECUTE pg_catalog.format('SET LOCAL ROLE %I', attached.owner);
        EXECUTE pg_catalog.format('LOCK TABLE %s IN ACCESS EXCLUSIVE MODE', attached.name);
    END IF;
END
<<quote>>;
