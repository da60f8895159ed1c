-- grants: who may do what; run after every migration, changes nothing the second time.
-- Roles belong to the whole server: deploy/roles.sql makes them, and a missing one is granted
-- nothing. No notice says so where no other login exists, as in an embedded server.
DO $$
DECLARE
    role text;
    ours text;
BEGIN
    -- Lists, and what is not in them is taken away: docs/security.md has the same. What was made
    -- for attached tables belongs to the owners of these, who gave the rights.
    SELECT string_agg(p.oid::regprocedure::text, ', ') INTO ours
    FROM pg_proc AS p
    WHERE p.pronamespace = (SELECT n.oid FROM pg_namespace AS n WHERE n.nspname = 'hybrid_runner')
        AND p.proname !~ '^source_[0-9]+_';
    EXECUTE format('REVOKE ALL ON ROUTINE %s FROM PUBLIC', ours);
    FOREACH role IN ARRAY ARRAY['producer', 'worker', 'reader'] LOOP
        IF to_regrole('hybrid_runner_' || role) IS NOT NULL THEN
            EXECUTE format('REVOKE ALL ON ROUTINE %s FROM %I', ours, 'hybrid_runner_' || role);
        ELSIF EXISTS (
            SELECT FROM pg_roles AS r WHERE r.rolcanlogin AND r.rolname <> session_user
        ) THEN
            RAISE NOTICE
                'there is no role hybrid_runner_%, so it was granted nothing: run deploy/roles.sql '
                'as the administrator of the server, and migrate again', role
                USING ERRCODE = '01007';
        END IF;
    END LOOP;

    IF to_regrole('hybrid_runner_producer') IS NOT NULL THEN
        GRANT USAGE ON SCHEMA hybrid_runner TO hybrid_runner_producer;
        GRANT INSERT (
            queue, kind, priority, payload, data, key, run_at, max_attempts, timeout, finish_by,
            start_by, max_snoozes, max_duration, finish_within, traceparent
        ) ON hybrid_runner.jobs TO hybrid_runner_producer;
        GRANT SELECT (id) ON hybrid_runner.jobs TO hybrid_runner_producer;
        GRANT EXECUTE ON FUNCTION
            hybrid_runner.enqueue, hybrid_runner.enqueue_job, hybrid_runner.enqueue_jobs,
            hybrid_runner.key_of,
            hybrid_runner.queue_of, hybrid_runner.similar_kind,
            hybrid_runner.schedule, hybrid_runner.unschedule, hybrid_runner.pause_schedule,
            hybrid_runner.resume_schedule, hybrid_runner.run_now, hybrid_runner.next_fire,
            hybrid_runner.next_ticks, hybrid_runner.next_ticks_of
            TO hybrid_runner_producer;
        GRANT INSERT (
            name, kind, queue, payload, priority, max_attempts, timeout, cron, every, at, timezone,
            overlap, missed, catch_up, jitter, starts_at, ends_at, paused_at
        ) ON hybrid_runner.schedules TO hybrid_runner_producer;
        GRANT SELECT (name, next_at) ON hybrid_runner.schedules TO hybrid_runner_producer;
    END IF;

    IF to_regrole('hybrid_runner_worker') IS NOT NULL THEN
        GRANT USAGE ON SCHEMA hybrid_runner TO hybrid_runner_worker;
        GRANT SELECT, INSERT, UPDATE, DELETE ON hybrid_runner.jobs, hybrid_runner.workers
            TO hybrid_runner_worker;
        GRANT SELECT, INSERT (name, every), UPDATE ON hybrid_runner.duties TO hybrid_runner_worker;
        GRANT SELECT, INSERT, UPDATE, DELETE ON hybrid_runner.kinds TO hybrid_runner_worker;
        GRANT SELECT, INSERT, UPDATE, DELETE ON
            hybrid_runner.unreported_ends, hybrid_runner.waits
            TO hybrid_runner_worker;
        GRANT SELECT, DELETE, UPDATE (newest_job) ON hybrid_runner.signals TO hybrid_runner_worker;
        -- who deletes what nobody holds needs the right to lock it
        GRANT SELECT, UPDATE, DELETE ON hybrid_runner.taken_keys TO hybrid_runner_worker;
        GRANT INSERT (key, payload) ON hybrid_runner.signals TO hybrid_runner_worker;
        GRANT SELECT, INSERT ON hybrid_runner.archive TO hybrid_runner_worker;
        GRANT SELECT ON hybrid_runner.callback_secret TO hybrid_runner_worker;
        GRANT SELECT ON
            hybrid_runner.queues, hybrid_runner.all_jobs, hybrid_runner.migrations,
            hybrid_runner.retention
            TO hybrid_runner_worker;
        GRANT SELECT ON ALL SEQUENCES IN SCHEMA hybrid_runner TO hybrid_runner_worker;
        -- the last one to print the script of an attachment, for the owner to run
        GRANT USAGE ON SEQUENCE
            hybrid_runner.claims, hybrid_runner.jobs_id_seq, hybrid_runner.sources_id_seq
            TO hybrid_runner_worker;
        GRANT UPDATE ON SEQUENCE hybrid_runner.stream_readers_until TO hybrid_runner_worker;
        ALTER DEFAULT PRIVILEGES IN SCHEMA hybrid_runner
            GRANT SELECT ON SEQUENCES TO hybrid_runner_worker;
        -- No function of a trigger: on a table of one's own, with types of one's own, it would run
        -- their casts as the owner.
        GRANT EXECUTE ON FUNCTION
            hybrid_runner.enqueue, hybrid_runner.enqueue_job, hybrid_runner.enqueue_jobs,
            hybrid_runner.key_of,
            hybrid_runner.begin_successor, hybrid_runner.pass_keys, hybrid_runner.let_go,
            hybrid_runner.give_free_keys, hybrid_runner.end_unbegun, hybrid_runner.amend,
            hybrid_runner.pause, hybrid_runner.resume, hybrid_runner.cancel,
            hybrid_runner.retry, hybrid_runner.end_jobs, hybrid_runner.take_ended,
            hybrid_runner.store_follow_ups, hybrid_runner.ended_payload, hybrid_runner.ring,
            hybrid_runner.notify_if_room, hybrid_runner.readers_left_ms,
            hybrid_runner.changes_channel, hybrid_runner.open_queue, hybrid_runner.keep,
            hybrid_runner.make_archive_partitions, hybrid_runner.prune, hybrid_runner.find_growth,
            hybrid_runner.open_bell, hybrid_runner.mute_bell, hybrid_runner.leave_bell,
            hybrid_runner.join_sleepers, hybrid_runner.leave_sleepers,
            hybrid_runner.queue_depths, hybrid_runner.scale, hybrid_runner.horizon_age,
            hybrid_runner.archived, hybrid_runner.missing_jobs, hybrid_runner.signal,
            hybrid_runner.signals_channel, hybrid_runner.wake_waiting,
            hybrid_runner.queue_of, hybrid_runner.similar_kind, hybrid_runner.unknown_kinds,
            hybrid_runner.end_expired, hybrid_runner.write_rows, hybrid_runner.row_verdict,
            hybrid_runner.outranks_owner,
            hybrid_runner.write_late_rows, hybrid_runner.apply_row_changes,
            hybrid_runner.apply_to_jobs, hybrid_runner.want_again, hybrid_runner.find_lockers, hybrid_runner.rows_of_source, hybrid_runner.want_rows,
            hybrid_runner.cancel_jobs_without_rows,
            hybrid_runner.schedule, hybrid_runner.unschedule, hybrid_runner.pause_schedule,
            hybrid_runner.resume_schedule, hybrid_runner.run_now, hybrid_runner.next_fire,
            hybrid_runner.next_ticks, hybrid_runner.next_ticks_of, hybrid_runner.fire_schedules,
            hybrid_runner.next_tick, hybrid_runner.declare_schedules, hybrid_runner.free_tick
            TO hybrid_runner_worker;
        GRANT SELECT, UPDATE (paused_at) ON hybrid_runner.schedules TO hybrid_runner_worker;
        GRANT SELECT ON hybrid_runner.sources TO hybrid_runner_worker;
        GRANT SELECT, INSERT, UPDATE, DELETE ON hybrid_runner.late_rows TO hybrid_runner_worker;
        GRANT SELECT, DELETE ON hybrid_runner.row_changes TO hybrid_runner_worker;
    END IF;

    IF to_regrole('hybrid_runner_reader') IS NOT NULL THEN
        GRANT USAGE ON SCHEMA hybrid_runner TO hybrid_runner_reader;
        GRANT SELECT ON ALL TABLES IN SCHEMA hybrid_runner TO hybrid_runner_reader;
        REVOKE ALL ON hybrid_runner.callback_secret FROM hybrid_runner_reader;
        ALTER DEFAULT PRIVILEGES IN SCHEMA hybrid_runner
            GRANT SELECT ON TABLES TO hybrid_runner_reader;
        GRANT EXECUTE ON FUNCTION
            hybrid_runner.queue_depths, hybrid_runner.scale, hybrid_runner.horizon_age,
            hybrid_runner.archived, hybrid_runner.unknown_kinds, hybrid_runner.next_fire,
            hybrid_runner.next_ticks, hybrid_runner.next_ticks_of
            TO hybrid_runner_reader;
    END IF;

END
$$;
