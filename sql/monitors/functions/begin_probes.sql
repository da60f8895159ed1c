-- begin_probes: write down, before they begin, that probes of services with an open breaker are on
-- their way: should this round die, nobody sends others before `until`. Returns which may begin; no
-- array: the claim is stale.
CREATE OR REPLACE FUNCTION hybrid_monitors.begin_probes(
    job_id bigint, claim bigint, service_ids bigint[], until timestamptz
) RETURNS bigint[]
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
SET lock_timeout = '5s'
AS $$
#variable_conflict use_column
DECLARE
    its_host text;
    begun bigint[];
BEGIN
    SELECT substr(j.key, 10) INTO its_host FROM hybrid_runner.jobs AS j
    WHERE j.id = begin_probes.job_id AND j.claim = begin_probes.claim AND j.state = 'running'
        AND j.key LIKE 'monitors:%'
    FOR SHARE;
    IF NOT FOUND THEN
        RETURN NULL;
    END IF;
    WITH probed AS (
        UPDATE hybrid_monitors.standings AS t
        SET breaker = 'half_open', opened_at = clock_timestamp(), due_at = begin_probes.until
        WHERE t.service_id = ANY (begin_probes.service_ids) AND t.host = its_host
            AND t.breaker <> 'closed'
        RETURNING t.service_id
    )
    SELECT coalesce(array_agg(p.service_id), '{}') INTO begun FROM probed AS p;
    RETURN begun;
END
$$;
