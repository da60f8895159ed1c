-- callers: who may call what was made for the table; its triggers' functions nobody may. Should a
-- policy come to hide rows from its owner, they are not gone: what looks for them is to fail.
DO <<quote>>
DECLARE
    made record;
    role record;
BEGIN
    FOR made IN
        SELECT p.oid::regprocedure AS name, p.proname ~ '_(write|rows|want)$' AS is_called
        FROM pg_catalog.pg_proc AS p
        WHERE p.pronamespace = 'hybrid_runner'::pg_catalog.regnamespace
            AND p.proname ~ '^<<prefix>>_[a-z]+$'
    LOOP
        EXECUTE pg_catalog.format('REVOKE ALL ON FUNCTION %s FROM PUBLIC', made.name);
        IF made.is_called AND NOT pg_catalog.row_security_active(<<relation_word>>) THEN
            EXECUTE pg_catalog.format('ALTER FUNCTION %s SET row_security = off', made.name);
        END IF;
        FOR role IN
            SELECT r.rolname
            FROM pg_catalog.pg_roles AS r
            WHERE made.is_called
                AND r.rolname IN (<<runner_owner_word>>, 'hybrid_runner_worker')
        LOOP
            EXECUTE pg_catalog.format('GRANT EXECUTE ON FUNCTION %s TO %I', made.name, role.rolname);
        END LOOP;
    END LOOP;
END
<<quote>>;
