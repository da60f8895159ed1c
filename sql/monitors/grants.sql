-- grants: who may do what with monitors; run after every migration, changes nothing the second
-- time. As in sql/grants.sql, a role that is not there is granted nothing.
DO $$
DECLARE
    role text;
    ours text;
BEGIN
    IF to_regrole('hybrid_monitors_editor') IS NULL AND EXISTS (
        SELECT FROM pg_roles AS r WHERE r.rolcanlogin AND r.rolname <> session_user
    ) THEN
        RAISE NOTICE
            'there is no role hybrid_monitors_editor, so it was granted nothing: run '
            'deploy/roles.sql as the administrator of the server, and migrate again'
            USING ERRCODE = '01007';
    END IF;

    -- Lists, and what is not in them is taken away: docs/security.md has the same.
    SELECT string_agg(p.oid::regprocedure::text, ', ') INTO ours
    FROM pg_proc AS p
    WHERE p.pronamespace = (SELECT n.oid FROM pg_namespace AS n WHERE n.nspname = 'hybrid_monitors');
    EXECUTE format('REVOKE ALL ON ROUTINE %s FROM PUBLIC', ours);
    FOREACH role IN ARRAY ARRAY[
        'hybrid_monitors_editor', 'hybrid_runner_worker', 'hybrid_runner_reader'
    ] LOOP
        CONTINUE WHEN to_regrole(role) IS NULL;
        EXECUTE format('REVOKE ALL ON ROUTINE %s FROM %I', ours, role);
        EXECUTE format('GRANT USAGE ON SCHEMA hybrid_monitors TO %I', role);
        EXECUTE format('GRANT SELECT ON ALL TABLES IN SCHEMA hybrid_monitors TO %I', role);
        EXECUTE format('GRANT SELECT ON ALL SEQUENCES IN SCHEMA hybrid_monitors TO %I', role);
        EXECUTE format(
            'ALTER DEFAULT PRIVILEGES IN SCHEMA hybrid_monitors GRANT SELECT ON TABLES TO %I', role);
    END LOOP;

    IF to_regrole('hybrid_monitors_editor') IS NOT NULL THEN
        -- not the id, which could be one that comes later
        GRANT
            INSERT (
                name, url, every, timeout, format, mapping, expect, headers, follow, fail_after,
                recover_after, depends_on, labels, active, quiet_until
            ),
            UPDATE (
                name, url, every, timeout, format, mapping, expect, headers, follow, fail_after,
                recover_after, depends_on, labels, active, quiet_until
            ),
            DELETE
            ON hybrid_monitors.services TO hybrid_monitors_editor;
        GRANT INSERT, UPDATE, DELETE ON hybrid_monitors.aliases TO hybrid_monitors_editor;
        GRANT
            INSERT (service_id, label, begins, ends, every, reason),
            UPDATE (service_id, label, begins, ends, every, reason), DELETE
            ON hybrid_monitors.windows TO hybrid_monitors_editor;
        GRANT EXECUTE ON FUNCTION
            hybrid_monitors.ask_poll, hybrid_monitors.add_service, hybrid_monitors.update_service,
            hybrid_monitors.service_columns_of, hybrid_monitors.is_window_open,
            hybrid_monitors.latency_bounds
            TO hybrid_monitors_editor;
    END IF;
    IF to_regrole('hybrid_runner_reader') IS NOT NULL THEN
        GRANT EXECUTE ON FUNCTION hybrid_monitors.is_window_open, hybrid_monitors.latency_bounds
            TO hybrid_runner_reader;
    END IF;
    IF to_regrole('hybrid_runner_worker') IS NOT NULL THEN
        GRANT UPDATE ON SEQUENCE hybrid_monitors.event_readers_until TO hybrid_runner_worker;
        GRANT EXECUTE ON FUNCTION
            hybrid_monitors.take_round, hybrid_monitors.record_round, hybrid_monitors.begin_probes,
            hybrid_monitors.open_hosts, hybrid_monitors.close_host, hybrid_monitors.wake_set_back,
            hybrid_monitors.ask_poll, hybrid_monitors.make_partitions,
            hybrid_monitors.drop_partitions, hybrid_monitors.roll_up_hour,
            hybrid_monitors.forget_leftovers, hybrid_monitors.rename_dependencies,
            hybrid_monitors.upkeep_ended, hybrid_monitors.is_window_open,
            hybrid_monitors.latency_bounds, hybrid_monitors.events_are_read
            TO hybrid_runner_worker;
    END IF;
END
$$;
