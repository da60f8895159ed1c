-- take_round: what the round of this host has to do now, at most so many services: those that are
-- asked for or due, polled longest ago first. NULL: the claim is stale.
-- Only the round of the host's own job: nobody else polls there at the same time.
-- A service that the worker knows is only named, if neither its row nor that of its standing has
-- been written since: a row's xmin says so.
CREATE OR REPLACE FUNCTION hybrid_monitors.take_round(
    host text, job_id bigint, claim bigint, most integer, known_ids bigint[], known_versions xid[],
    known_standings xid[]
) RETURNS json
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
-- Its statements are so written that one index fits each, for any table.
SET lock_timeout = '5s' SET plan_cache_mode = 'force_generic_plan' SET enable_seqscan = off
SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off
AS $$
#variable_conflict use_column
DECLARE
    -- as place_of() in policy/monitor_rounds.py has it
    place CONSTANT double precision := hybrid_monitors.phase_of(take_round.job_id);
    looked timestamptz;
    last_look timestamptz;
    on_its_way bigint[];
    is_known boolean;
    has_windows CONSTANT boolean := EXISTS (SELECT FROM hybrid_monitors.windows);
    own record;
    taken bigint[];
    recognised bigint[] := '{}';
    stopped json := '[]';
    services json := '[]';
BEGIN
    PERFORM FROM hybrid_runner.jobs AS j
    WHERE j.id = take_round.job_id AND j.claim = take_round.claim AND j.state = 'running'
        AND j.key = 'monitors:' || take_round.host
    FOR SHARE;
    IF NOT FOUND THEN
        RETURN NULL;
    END IF;
    SELECT
        h.looked_at,
        CASE WHEN h.round_job = take_round.job_id AND h.round_claim = take_round.claim
            THEN h.round_services ELSE '{}' END
    INTO last_look, on_its_way
    FROM hybrid_monitors.hosts AS h WHERE h.host = take_round.host FOR NO KEY UPDATE;
    is_known := FOUND;
    on_its_way := coalesce(on_its_way, '{}');
    looked := clock_timestamp();
    IF last_look > looked + interval '5 seconds' THEN
        PERFORM hybrid_monitors.mend_set_back(take_round.host, place, looked);
    END IF;

    FOR pass IN 1..2 LOOP -- the second time when some were put off
        own := hybrid_monitors.survey_host(take_round.host, on_its_way, last_look, looked);
        EXIT WHEN pass = 2 OR own.new = 0 AND NOT own.is_late;
        EXIT WHEN NOT hybrid_monitors.spread_services(
            take_round.host, place, last_look, looked);
    END LOOP;
    taken := coalesce((own.due)[1:take_round.most], '{}');

    -- What has no standing here may have one elsewhere; and a standing here that is of no service
    -- here is of one that has stopped.
    IF own.new > 0 OR own.here <> (
        SELECT count(*) FROM hybrid_monitors.standings AS t WHERE t.host = take_round.host
    ) THEN
        stopped := hybrid_monitors.stopped_services(take_round.host, taken);
    END IF;

    IF cardinality(taken) > 0 AND cardinality(known_ids) > 0 THEN
        recognised := hybrid_monitors.recognised_services(
            take_round.host, taken, known_ids, known_versions, known_standings, has_windows);
    END IF;
    IF cardinality(taken) > cardinality(recognised) THEN
        SELECT json_agg(row_to_json(v)) INTO services
        FROM (
            SELECT
                s.id, s.name, s.url, extract(epoch FROM s.every) AS every,
                extract(epoch FROM s.timeout) AS timeout, s.format,
                -- as texts, which are read one by one: an editor may have stored anything
                s.mapping::text AS mapping, s.expect::text AS expect, s.headers::text AS headers,
                s.follow, s.fail_after, s.recover_after, a.service_id IS NOT NULL AS is_asked,
                CASE WHEN has_windows OR s.depends_on IS NOT NULL OR s.quiet_until IS NOT NULL
                    THEN hybrid_monitors.why_suppressed(s.id, s.depends_on, s.labels, s.quiet_until)
                END AS suppressed,
                CASE WHEN t.is_started AND t.host = s.host THEN row_to_json(t) END AS standing,
                s.xmin::text::bigint AS version,
                -- as long as its last answer counts: else they are not those that it names
                CASE WHEN t.ok AND t.digest IS NOT NULL AND NOT t.is_unsettled THEN (
                    SELECT coalesce(json_object_agg(d.name, d.id), '{}')
                    FROM hybrid_monitors.dependencies AS d WHERE d.service_id = s.id
                ) END AS dependency_ids
            FROM unnest(taken) AS i (id)
            JOIN hybrid_monitors.services AS s ON s.id = i.id
            LEFT JOIN hybrid_monitors.standings AS t ON t.service_id = s.id
            LEFT JOIN hybrid_monitors.asked AS a ON a.service_id = s.id
            WHERE s.id <> ALL (recognised)
        ) AS v;
        services := coalesce(services, '[]'); -- somebody has deleted them
    END IF;

    IF cardinality(own.due) > take_round.most THEN
        own.next_due := looked;
    END IF;
    IF is_known THEN
        UPDATE hybrid_monitors.hosts AS h SET
            looked_at = looked, next_due_at = own.next_due, round_job = take_round.job_id,
            round_claim = take_round.claim,
            round_began_at = CASE WHEN h.round_claim = take_round.claim
                THEN h.round_began_at ELSE looked END,
            round_services = on_its_way || taken
        WHERE h.host = take_round.host;
    ELSE
        INSERT INTO hybrid_monitors.hosts (
            host, looked_at, next_due_at, round_job, round_claim, round_began_at, round_services
        ) VALUES (
            take_round.host, looked, own.next_due, take_round.job_id, take_round.claim, looked, taken
        );
    END IF;
    RETURN json_build_object(
        'now', looked, 'services', services, 'order', taken, 'recognised', recognised, 'stopped', stopped,
        'next_due', extract(epoch FROM own.next_due - looked),
        'polls_are_read', hybrid_monitors.events_are_read());
END
$$;
