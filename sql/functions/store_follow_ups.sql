-- store_follow_ups: store the jobs that follow others; returns their ids, and which jobs they
-- follow.
-- Each is an object of columns of jobs and of three fields more: "follows" (a job's id), "delay",
-- and "is_clean_up" (what the kind of that job has under on_end).
-- Whose key a live job has is not stored, for that job stands for it; but a clean-up always is:
-- without its key if somebody has that, or may have it, in a transaction that is open.
CREATE OR REPLACE FUNCTION hybrid_runner.store_follow_ups(
    follow_ups jsonb[]
) RETURNS TABLE (follows bigint, id bigint)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
-- Rows of the jobs that end are locked meanwhile, and other outcomes wait.
SET lock_timeout = '30ms'
AS $$
#variable_conflict use_column
DECLARE
    clean_ups_have_keys boolean := true;
    followed bigint[];
    ids bigint[];
    is_complete boolean;
BEGIN
    IF cardinality(store_follow_ups.follow_ups) = 0 THEN
        RETURN;
    END IF;
    LOOP
        BEGIN
            WITH wanted AS (
                SELECT
                    (f.job ->> 'follows')::bigint AS follows, f.place, f.job,
                    coalesce((f.job ->> 'is_clean_up')::boolean, false) AS is_clean_up
                FROM unnest(store_follow_ups.follow_ups) WITH ORDINALITY AS f (job, place)
            ),
            new AS MATERIALIZED (
                SELECT
                    w.*, nextval('hybrid_runner.jobs_id_seq') AS id,
                    CASE
                        WHEN NOT w.is_clean_up THEN w.job ->> 'key'
                        WHEN clean_ups_have_keys AND NOT EXISTS (
                            SELECT FROM hybrid_runner.jobs AS j WHERE j.key = w.job ->> 'key'
                        ) THEN w.job ->> 'key'
                    END AS key
                FROM wanted AS w
            ),
            made AS (
                INSERT INTO hybrid_runner.jobs AS j (
                    id, kind, payload, queue, key, priority, run_at, max_attempts, timeout,
                    finish_by, data, traceparent, max_snoozes, max_duration, finish_within,
                    start_by
                )
                SELECT
                    n.id, r.kind, n.job -> 'payload',
                    coalesce(r.queue, k.queue, 'default'), n.key, coalesce(r.priority, 5),
                    coalesce(r.run_at, clock_timestamp() + coalesce((n.job ->> 'delay')::interval, interval '0')),
                    r.max_attempts, r.timeout, r.finish_by, n.job -> 'data', r.traceparent,
                    r.max_snoozes, r.max_duration, r.finish_within, r.start_by
                FROM new AS n
                CROSS JOIN LATERAL jsonb_populate_record(
                    NULL::hybrid_runner.jobs, n.job - ARRAY['payload', 'data']) AS r
                LEFT JOIN hybrid_runner.kinds AS k ON k.name = r.kind
                -- In one order everywhere, so that two of these cannot wait for each other.
                ORDER BY n.key COLLATE "C", n.place
                ON CONFLICT (key) WHERE key IS NOT NULL DO NOTHING
                RETURNING j.id
            )
            SELECT
                array_agg(n.follows) FILTER (WHERE s.id IS NOT NULL),
                array_agg(n.id) FILTER (WHERE s.id IS NOT NULL),
                bool_and(s.id IS NOT NULL OR NOT n.is_clean_up)
            INTO followed, ids, is_complete
            FROM new AS n
            LEFT JOIN made AS s ON s.id = n.id;
            IF NOT is_complete THEN
                RAISE EXCEPTION 'the key of a clean-up is taken' USING ERRCODE = 'lock_not_available';
            END IF;
            EXIT;
        EXCEPTION
            WHEN lock_not_available THEN
                IF NOT clean_ups_have_keys OR NOT EXISTS (
                    SELECT FROM unnest(store_follow_ups.follow_ups) AS f (job)
                    WHERE f.job ? 'is_clean_up'
                ) THEN
                    RAISE EXCEPTION 'the key of a follow-up is in a transaction that is still open'
                        USING ERRCODE = 'lock_not_available',
                        CONSTRAINT = 'jobs_one_live_job_per_key';
                END IF;
                clean_ups_have_keys := false;
        END;
    END LOOP;
    RETURN QUERY SELECT u.follows, u.id FROM unnest(followed, ids) AS u (follows, id);
END
$$;
