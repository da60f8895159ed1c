-- ring_for_inserted_jobs: the trigger on jobs: ring for what was inserted.
-- Most inserts are for one queue, and its bell is mute while many come: that is decided by one
-- short query.
CREATE OR REPLACE FUNCTION hybrid_runner.ring_for_inserted_jobs() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    PERFORM
    FROM (SELECT DISTINCT i.queue FROM inserted AS i) AS n
    LEFT JOIN hybrid_runner.queues AS q ON q.name = n.queue
    WHERE (
        -- muted for 1 to 60000 ms more; BETWEEN would ask twice for the value and for the time
        abs(
            CASE WHEN pg_relation_filenode(q.doorbell) IS NOT NULL
                THEN pg_sequence_last_value(q.doorbell) END
            - (extract(epoch FROM clock_timestamp()) * 1000)::bigint - 30000
        ) < 30000
    ) IS NOT TRUE
    LIMIT 1;
    IF NOT FOUND THEN
        RETURN NULL;
    ELSIF coalesce(nullif(current_setting('hybrid_runner.quiet', true), ''), 'off')::boolean THEN
        -- What is due a moment after it was made needs no ring, so that none is missed.
        UPDATE hybrid_runner.jobs AS j
        SET run_at = greatest(j.run_at, j.created_at) + interval '101 milliseconds'
        FROM inserted AS i
        WHERE j.id = i.id AND j.run_at <= j.created_at + interval '100 milliseconds';
    ELSE
        PERFORM hybrid_runner.ring(i.queue, min(i.run_at)) FROM inserted AS i
        GROUP BY i.queue, i.run_at > clock_timestamp();
    END IF;
    RETURN NULL;
END
$$;
