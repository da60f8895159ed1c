-- update_service: change those columns of the service of this name that are in the JSON, as
-- add_service() has them; its id, NULL: there is none. Runs with the rights of whoever calls it.
CREATE OR REPLACE FUNCTION hybrid_monitors.update_service(name text, columns jsonb) RETURNS bigint
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_column
DECLARE
    changed bigint;
    k jsonb := update_service.columns;
    c hybrid_monitors.service_columns;
BEGIN
    c := hybrid_monitors.service_columns_of(k);
    UPDATE hybrid_monitors.services AS s SET
        name = CASE WHEN k ? 'name' THEN c.name ELSE s.name END,
        url = CASE WHEN k ? 'url' THEN c.url ELSE s.url END,
        every = CASE WHEN k ? 'every' THEN c.every ELSE s.every END,
        timeout = CASE WHEN k ? 'timeout' THEN c.timeout ELSE s.timeout END,
        -- another mapping alone says what the format is
        format = CASE WHEN k ? 'format' THEN c.format WHEN k ? 'mapping' THEN NULL ELSE s.format END,
        mapping = CASE WHEN k ? 'mapping' THEN c.mapping ELSE s.mapping END,
        expect = CASE WHEN k ? 'expect' THEN c.expect ELSE s.expect END,
        headers = CASE WHEN k ? 'headers' THEN c.headers ELSE s.headers END,
        follow = CASE WHEN k ? 'follow' THEN c.follow ELSE s.follow END,
        fail_after = CASE WHEN k ? 'fail_after' THEN c.fail_after ELSE s.fail_after END,
        recover_after = CASE WHEN k ? 'recover_after' THEN c.recover_after ELSE s.recover_after END,
        depends_on = CASE WHEN k ? 'depends_on' THEN c.depends_on ELSE s.depends_on END,
        labels = CASE WHEN k ? 'labels' THEN c.labels ELSE s.labels END,
        active = CASE WHEN k ? 'active' THEN c.active ELSE s.active END,
        quiet_until = CASE WHEN k ? 'quiet_until' THEN c.quiet_until ELSE s.quiet_until END
    WHERE s.name = update_service.name
    RETURNING s.id INTO changed;
    RETURN changed;
END
$$;
