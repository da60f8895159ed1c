-- record_round: store what a round has found, all of it or nothing; no row: its claim is stale.
-- What was decided of a service that has another address by now, or is paused or gone, is dropped.
-- Of services that are as they were only times and latencies are said; `version` is the xmin of all
-- rows of standings that were written.
-- Events get their numbers last, so that rounds wait for each other's commits for as short as can
-- be.
CREATE OR REPLACE FUNCTION hybrid_monitors.record_round(
    host text, job_id bigint, claim bigint, round jsonb, latency_services bigint[],
    latency_names text[], latencies integer[], last boolean, same_ids bigint[],
    same_dues timestamptz[], same_polls timestamptz[], same_latencies integer[],
    told_services bigint[], told_dependencies bigint[], told_latencies integer[]
) RETURNS TABLE (
    next_due double precision, event_ids bigint[], status_changes integer, version bigint
)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
SET lock_timeout = '5s' SET plan_cache_mode = 'force_generic_plan' SET enable_seqscan = off
SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off
AS $$
#variable_conflict use_column
DECLARE
    now CONSTANT timestamptz := clock_timestamp();
    usual hybrid_monitors.standings;
    decided hybrid_monitors.standings[];
    kept bigint[];
    same bigint[] := '{}';
    mentioned bigint[];
    first_due timestamptz;
    same_due timestamptz;
    gone bigint[];
    has_stopped bigint[];
BEGIN
    PERFORM FROM hybrid_runner.jobs AS j
    WHERE j.id = record_round.job_id AND j.claim = record_round.claim AND j.state = 'running'
        AND j.key = 'monitors:' || record_round.host
    FOR SHARE;
    IF NOT FOUND THEN
        RETURN;
    END IF;
    event_ids := '{}';
    status_changes := 0;
    version := pg_current_xact_id()::xid::text::bigint;

    IF round ? 'stopped' THEN
        -- Unless it goes on by now, or another round has told it.
        WITH deleted AS (
            DELETE FROM hybrid_monitors.standings AS t
            WHERE t.service_id = ANY (ARRAY(
                SELECT i.id::bigint FROM jsonb_array_elements_text(round -> 'stopped') AS i (id)))
                AND NOT EXISTS (
                    SELECT FROM hybrid_monitors.services AS s
                    WHERE s.id = t.service_id AND s.active AND s.host = t.host)
            RETURNING t.service_id
        )
        SELECT coalesce(array_agg(d.service_id), '{}') INTO has_stopped FROM deleted AS d;
        SELECT coalesce(array_agg(i.id), '{}') INTO gone
        FROM unnest(has_stopped) AS i (id)
        WHERE NOT EXISTS (SELECT FROM hybrid_monitors.services AS s WHERE s.id = i.id);
        IF cardinality(gone) > 0 THEN
            DELETE FROM hybrid_monitors.dependencies AS d WHERE d.service_id = ANY (gone);
            DELETE FROM hybrid_monitors.asked AS a WHERE a.service_id = ANY (gone);
        END IF;
    END IF;

    IF round ? 'standings' THEN
        -- What is not said of a standing.
        usual.failures := 0;
        usual.recoveries := 0;
        usual.is_down := false;
        usual.told_down := false;
        usual.is_unsettled := false;
        usual.breaker := 'closed';
        usual.warnings := '[]';
        SELECT array_agg(r), array_agg(s.id), min(r.due_at) INTO decided, kept, first_due
        FROM jsonb_populate_recordset(usual, round -> 'standings') AS r
        JOIN hybrid_monitors.services AS s ON s.id = r.service_id
        WHERE s.active AND s.host = record_round.host AND s.url = r.url;
    END IF;
    kept := coalesce(kept, '{}');
    IF cardinality(kept) > 0 THEN
        PERFORM hybrid_monitors.store_standings(record_round.host, decided);
        status_changes := hybrid_monitors.store_dependencies(kept, round, now);
        PERFORM hybrid_monitors.store_latencies(
            record_round.host, kept, latency_services, latency_names, latencies, now);
    END IF;
    IF cardinality(same_ids) > 0 THEN
        SELECT w.written, w.first_due INTO same, same_due
        FROM hybrid_monitors.store_same(
            record_round.host, same_ids, same_dues, same_polls, same_latencies, told_services,
            told_dependencies, told_latencies, now) AS w;
        first_due := least(first_due, same_due);
    END IF;
    IF round ? 'answered' AND EXISTS (SELECT FROM hybrid_monitors.asked) THEN
        DELETE FROM hybrid_monitors.asked AS a
        WHERE a.service_id = ANY (kept) AND a.service_id = ANY (ARRAY(
            SELECT i.id::bigint FROM jsonb_array_elements_text(round -> 'answered') AS i (id)));
    END IF;

    mentioned := ARRAY(
        SELECT (d.decided ->> 'service_id')::bigint
        FROM jsonb_array_elements(round -> 'standings') AS d (decided)) || same_ids;
    -- What was taken and is not recorded, or was dropped, is to be looked at again at once.
    UPDATE hybrid_monitors.hosts AS h SET
        looked_at = greatest(h.looked_at, now), -- the next one notices a clock that was set back
        next_due_at = least(
            h.next_due_at, first_due,
            CASE WHEN cardinality(kept) + cardinality(same) < cardinality(mentioned)
                OR record_round.last AND NOT h.round_services <@ mentioned THEN now END),
        round_services = CASE WHEN record_round.last THEN '{}' ELSE ARRAY(
            SELECT i.id FROM unnest(h.round_services) AS i (id) WHERE i.id <> ALL (mentioned)
        ) END
    WHERE h.host = record_round.host AND h.round_claim = record_round.claim
    RETURNING CASE
        WHEN NOT record_round.last OR h.next_due_at IS NULL THEN NULL
        ELSE extract(epoch FROM greatest(h.next_due_at, now) - now)
    END INTO next_due;
    IF round ? 'events' THEN
        event_ids := hybrid_monitors.store_events(kept, has_stopped, round);
    END IF;
    RETURN NEXT;
END
$$;
