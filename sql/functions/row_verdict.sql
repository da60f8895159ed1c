-- row_verdict: what is to be done with a row of an attached table when something became of its job:
-- 'write' it; 'keep' it, since its application has decided; store a job 'again', since it was
-- wanted anew while its job ran; or the job is 'unwanted' and must not run.
-- state is what became of the job: running, queued (put back), snoozed, completed, failed,
-- cancelled, retried (queued again after its end), beat (it still runs) or missing (there is none).
-- shows is which of our words the row has: queued, running (or snoozed), ended, or other.
-- was_queued: the job ended before any worker began it. is_untouched: the row could not be written
-- when the job began, and nobody has changed it since: what it shows is older than the job.
CREATE OR REPLACE FUNCTION hybrid_runner.row_verdict(
    state text, shows text, is_wanted boolean, was_queued boolean, is_untouched boolean
) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE
AS $$
    SELECT CASE
        WHEN state = 'running' THEN CASE
            WHEN shows = 'running' OR shows = 'queued' AND is_wanted THEN 'write'
            WHEN shows = 'ended' AND is_untouched THEN 'write'
            ELSE 'unwanted'
        END
        WHEN shows = 'running' THEN 'write'
        WHEN state = 'retried' THEN CASE shows WHEN 'ended' THEN 'write' ELSE 'keep' END
        WHEN state IN ('completed', 'failed', 'cancelled') THEN CASE
            WHEN shows = 'queued' AND (was_queued OR is_untouched) THEN 'write'
            WHEN shows = 'ended' AND is_untouched THEN 'write'
            WHEN shows = 'queued' AND is_wanted THEN 'again'
            ELSE 'keep'
        END
        -- Put back after a retry that the row could not show.
        WHEN state IN ('queued', 'snoozed') AND shows = 'ended' AND is_untouched THEN 'write'
        ELSE 'keep'
    END
$$;
