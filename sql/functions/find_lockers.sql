-- find_lockers: the server processes that have locked a row, by its xmax; 0 is a prepared
-- transaction. Nobody has to wait to be told: whoever holds a row has written the number of its
-- transaction into it, or of a list if there are several, and holds the lock of that number.
-- The number of a savepoint that was released nobody holds: it is the only session, if there is no
-- other, that has changed or locked rows of the table and not ended its transaction.
CREATE OR REPLACE FUNCTION hybrid_runner.find_lockers(
    relation regclass, xmax text
) RETURNS SETOF integer
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    numbers text[] := ARRAY[find_lockers.xmax];
    others integer[];
    -- Above all that run: the snapshot's own bound may lie below them.
    above bigint := pg_snapshot_xmax(pg_current_snapshot())::text::bigint + 1000000;
    place bigint;
BEGIN
    FOR turn IN 1..2 LOOP
        RETURN QUERY
        SELECT DISTINCT coalesce(l.pid, 0)
        FROM pg_locks AS l
        WHERE l.locktype = 'transactionid' AND l.transactionid::text = ANY (numbers)
            AND l.mode = 'ExclusiveLock' AND l.granted;
        IF FOUND THEN
            RETURN;
        END IF;
        BEGIN
            -- Who only sees to it that the row stays, as a foreign key does, is in no one's way.
            numbers := ARRAY(
                SELECT m.xid::text
                FROM pg_get_multixact_members(find_lockers.xmax::xid) AS m
                WHERE m.mode <> 'keysh'
            );
        EXCEPTION
            WHEN OTHERS THEN
                EXIT; -- it was no list
        END;
    END LOOP;
    -- Rows have the last 32 of 64 bits.
    place := above - ((above - find_lockers.xmax::bigint) & 4294967295);
    IF place > 2 AND pg_xact_status(place::text::xid8) = 'in progress' THEN
        others := ARRAY(
            SELECT DISTINCT coalesce(l.pid, 0)
            FROM pg_locks AS l
            WHERE l.locktype = 'relation' AND l.relation = find_lockers.relation AND l.granted
                AND l.mode IN ('RowShareLock', 'RowExclusiveLock')
                AND l.database = (SELECT d.oid FROM pg_database AS d WHERE d.datname = current_database())
                AND l.pid IS DISTINCT FROM pg_backend_pid()
        );
        IF cardinality(others) = 1 THEN
            RETURN NEXT others[1];
        END IF;
    END IF;
END
$$;
