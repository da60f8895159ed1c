-- drop: drop functions that were made for a table, and their triggers, wherever these are by now.
DO <<quote>>
DECLARE
    made record;
BEGIN
    FOR made IN
        SELECT p.oid::regprocedure AS name
        FROM pg_catalog.pg_proc AS p
        WHERE p.pronamespace = 'hybrid_runner'::pg_catalog.regnamespace
            AND p.proname ~ '^<<prefix>>_(<<parts>>)$'
    LOOP
        EXECUTE pg_catalog.format('DROP FUNCTION %s CASCADE', made.name);
    END LOOP;
END
<<quote>>;
