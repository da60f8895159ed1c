-- pass_keys: these keys are free, in this transaction: whoever waits for one of them has it from
-- now on, and is due now or later; the others in its line move up. Says how many were given one.
-- One that somebody holds is waited for, for a moment, and once in a transaction: then it is due
-- when that one commits, since join_key() and amend() see to that, or is found by the duty `keys`.
-- One that a worker has claimed is left to it: it asks by begin_successor(), and finds it free.
CREATE OR REPLACE FUNCTION hybrid_runner.pass_keys(keys text[]) RETURNS integer
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
-- Rows of the jobs that end are locked meanwhile, and other outcomes wait.
SET lock_timeout = '30ms'
AS $$
DECLARE
    free text;
    may_wait boolean := current_setting('hybrid_runner.waited', true) IS DISTINCT FROM 'on';
    next hybrid_runner.jobs;
    passed integer := 0;
BEGIN
    IF NOT may_wait THEN
        PERFORM set_config('lock_timeout', '1ms', true); -- for this call
    END IF;
    FOR free IN
        SELECT k.key
        FROM unnest(pass_keys.keys) AS k (key)
        WHERE EXISTS (SELECT FROM hybrid_runner.jobs AS j WHERE j.key = '>' || k.key)
        ORDER BY k.key COLLATE "C"
    LOOP
        LOOP
            BEGIN
                IF may_wait THEN
                    SELECT j.* INTO next FROM hybrid_runner.jobs AS j
                    WHERE j.key = '>' || free AND j.state = 'queued' FOR UPDATE;
                ELSE
                    SELECT j.* INTO next FROM hybrid_runner.jobs AS j
                    WHERE j.key = '>' || free AND j.state = 'queued' FOR UPDATE SKIP LOCKED;
                END IF;
                EXIT WHEN NOT FOUND;
                UPDATE hybrid_runner.jobs AS j SET
                    key = free,
                    -- never behind a frontier; what still waits for another one sleeps on
                    run_at = CASE
                        WHEN starts_with(free, '>') OR j.run_at < 'infinity' AND j.run_at > clock_timestamp()
                            THEN j.run_at
                        ELSE clock_timestamp()
                    END,
                    version = j.version + 1
                WHERE j.id = next.id
                RETURNING j.run_at INTO next.run_at;
            EXCEPTION
                WHEN lock_not_available THEN
                    EXIT WHEN NOT may_wait;
                    may_wait := false;
                    PERFORM set_config('lock_timeout', '1ms', true);
                    PERFORM set_config('hybrid_runner.waited', 'on', true);
                    CONTINUE;
                WHEN unique_violation THEN
                    EXIT; -- somebody was quicker, and it goes on waiting for that one
            END;
            passed := passed + 1;
            PERFORM hybrid_runner.ring(next.queue, next.run_at);
            PERFORM hybrid_runner.publish(next.queue, next.kind, next.id);
            free := '>' || free;
        END LOOP;
    END LOOP;
    RETURN passed;
END
$$;
