-- free_tick: for end_jobs: a job of a schedule has ended, and if a tick waits for that, it has its
-- turn now. Nobody is waited for: if somebody has locked the schedule, workers are told to look
-- again, once this has committed.
-- The lock is kept until then, so that nobody puts a tick behind a job that has ended.
CREATE OR REPLACE FUNCTION hybrid_runner.free_tick(schedule text, id bigint) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET enable_seqscan = off
AS $$
DECLARE
    its hybrid_runner.schedules;
    made bigint;
BEGIN
    SELECT s.* INTO its FROM hybrid_runner.schedules AS s
    WHERE s.name = free_tick.schedule AND (s.overlap IN ('queue', 'replace') OR s.waiting_ticks IS NOT NULL)
    FOR UPDATE SKIP LOCKED;
    IF NOT FOUND THEN
        IF EXISTS (
            SELECT FROM hybrid_runner.schedules AS s
            WHERE s.name = free_tick.schedule AND s.overlap IN ('queue', 'replace')
        ) THEN
            PERFORM hybrid_runner.notify_if_room('hybrid_runner.~ticks', '');
        END IF;
    ELSIF its.waiting_ticks IS NOT NULL AND its.paused_at IS NULL
        AND (NOT its.declared OR its.name IN (SELECT hybrid_runner.declared_now()))
        AND NOT EXISTS (SELECT FROM hybrid_runner.jobs AS j WHERE j.schedule = its.name) THEN
        made := hybrid_runner.store_ticks(its, its.waiting_ticks[1:1]);
        UPDATE hybrid_runner.schedules AS s SET
            waiting_ticks = nullif(its.waiting_ticks[2:], '{}'), last_job = made
        WHERE s.name = its.name;
    END IF;
    RETURN free_tick.id;
END
$$;
