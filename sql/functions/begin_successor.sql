-- begin_successor: a worker has claimed a job whose key begins with '>': whether it may run. If
-- nobody has the key that it waits for, it has that from now on, which is returned. Else it is put
-- back, uncharged, and sleeps until that key is passed to it: NULL, as when the claim is void.
-- What counts is who has the key now, and not when somebody enqueued it; that one cannot end
-- meanwhile, and whoever ends it later sees this job sleep.
-- When that cannot be told, since somebody holds that one, it is asked again a second later.
CREATE OR REPLACE FUNCTION hybrid_runner.begin_successor(id bigint, claim bigint) RETURNS text
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
SET lock_timeout = '100ms'
AS $$
#variable_conflict use_column
DECLARE
    job hybrid_runner.jobs;
    awaited text;
    wakes_at timestamptz;
BEGIN
    -- Not waited for: who has a lock on it changes it, which makes this claim void, or rolls back.
    SELECT j.* INTO job FROM hybrid_runner.jobs AS j
    WHERE j.id = begin_successor.id AND j.claim = begin_successor.claim FOR UPDATE SKIP LOCKED;
    IF NOT FOUND THEN
        -- '': nobody can tell yet, and if the claim stays valid, the worker has to release it.
        RETURN (SELECT '' FROM hybrid_runner.jobs AS j
            WHERE j.id = begin_successor.id AND j.claim = begin_successor.claim);
    END IF;
    WHILE starts_with(job.key, '>') LOOP
        awaited := substr(job.key, 2);
        BEGIN
            PERFORM FROM hybrid_runner.jobs AS j WHERE j.key = awaited FOR SHARE;
            IF FOUND THEN
                wakes_at := 'infinity';
            ELSE
                UPDATE hybrid_runner.jobs AS j SET key = awaited, version = j.version + 1
                WHERE j.id = job.id;
            END IF;
        EXCEPTION
            WHEN unique_violation THEN
                CONTINUE; -- somebody took it just now
            WHEN lock_not_available THEN
                wakes_at := clock_timestamp() + interval '1 second';
        END;
        IF wakes_at IS NOT NULL THEN
            UPDATE hybrid_runner.jobs AS j SET
                state = 'queued', run_at = wakes_at, attempt = j.attempt - 1, claim = NULL,
                worker_id = NULL, started_at = NULL, version = j.version + 1
            WHERE j.id = job.id;
            IF wakes_at < 'infinity' THEN
                PERFORM hybrid_runner.ring(job.queue, wakes_at, true);
            END IF;
            RETURN NULL;
        END IF;
        PERFORM hybrid_runner.pass_keys(ARRAY[job.key]);
        job.key := awaited;
    END LOOP;
    RETURN job.key;
END
$$;
