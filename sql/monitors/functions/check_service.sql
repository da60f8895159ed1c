-- check_service: the trigger on services that refuses in one line, naming the column, what cannot
-- be polled. Of a changed row, the changed columns. The contents of mapping, expect and headers are
-- read by the round, which reports a fault as that of this service alone.
CREATE OR REPLACE FUNCTION hybrid_monitors.check_service() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off SET jit = off
AS $$
DECLARE
    is_new CONSTANT boolean := TG_OP = 'INSERT';
    refusal text;
BEGIN
    IF NEW.format IS NULL THEN
        NEW.format := CASE WHEN NEW.mapping IS NULL THEN 'dependencies' ELSE 'mapping' END;
    END IF;
    IF is_new AND NEW.id NOT BETWEEN 1 AND 4611686018427387904 THEN
        refusal := format('id must be given by Postgres, not %s', NEW.id);
    ELSIF NOT is_new AND NEW.id <> OLD.id THEN
        refusal := format('id must stay what it is, which is %s: add another service instead', OLD.id);
    ELSIF is_new OR NEW.name IS DISTINCT FROM OLD.name THEN
        refusal := hybrid_monitors.refusal_of_name('name', NEW.name);
    END IF;
    IF refusal IS NULL AND (is_new OR NEW.url IS DISTINCT FROM OLD.url) THEN
        refusal := coalesce(
            CASE WHEN NEW.url IS NULL THEN 'url must begin with http:// or https:// and name a host' END,
            hybrid_monitors.refusal_of_url(NEW.url));
    END IF;
    -- As text: a month less 29 days and more is equal to 30 s, and far from it when added.
    IF refusal IS NULL AND (is_new OR NEW.every::text <> OLD.every::text OR NEW.every IS NULL) THEN
        refusal := hybrid_monitors.refusal_of_interval(
            'every', NEW.every, interval '5 s', interval '1 h', '5s and 1h');
    END IF;
    IF refusal IS NULL AND (is_new OR NEW.timeout::text <> OLD.timeout::text OR NEW.timeout IS NULL) THEN
        refusal := hybrid_monitors.refusal_of_interval(
            'timeout', NEW.timeout, interval '100 ms', interval '60 s', '0.1s and 60s');
    END IF;
    IF refusal IS NULL AND (
        is_new OR (NEW.format, NEW.mapping) IS DISTINCT FROM (OLD.format, OLD.mapping)
    ) THEN
        refusal := CASE
            WHEN NEW.format NOT IN ('dependencies', 'mapping', 'status') THEN format(
                'format must be dependencies, mapping or status, not %s', left(NEW.format, 100))
            WHEN NEW.format = 'mapping' AND NEW.mapping IS NULL THEN
                'mapping is missing: it explains what the format mapping is'
            WHEN NEW.format <> 'mapping' AND NEW.mapping IS NOT NULL THEN format(
                'mapping is not used with the format %s: set the format to mapping', NEW.format)
        END;
    END IF;
    IF refusal IS NULL THEN
        SELECT min(o.name || CASE WHEN jsonb_typeof(o.value) <> 'object' THEN ' must be an object'
            ELSE ' has more than 8192 bytes of JSON: make it shorter' END)
        INTO refusal
        FROM (VALUES
            ('mapping', NEW.mapping), ('expect', NEW.expect), ('headers', NEW.headers),
            ('labels', coalesce(NEW.labels, 'null'))
        ) AS o (name, value)
        WHERE jsonb_typeof(o.value) <> 'object' OR octet_length(o.value::text) > 8192;
    END IF;
    refusal := coalesce(refusal, CASE
        WHEN (NEW.follow BETWEEN 0 AND 5) IS NOT TRUE THEN
            format('follow must be 0 to 5, not %s', coalesce(NEW.follow::text, 'NULL'))
        WHEN (NEW.fail_after BETWEEN 1 AND 100) IS NOT TRUE THEN
            format('fail_after must be 1 to 100, not %s', coalesce(NEW.fail_after::text, 'NULL'))
        WHEN (NEW.recover_after BETWEEN 1 AND 100) IS NOT TRUE THEN
            format('recover_after must be 1 to 100, not %s', coalesce(NEW.recover_after::text, 'NULL'))
        WHEN NEW.active IS NULL THEN 'active must be true or false, not NULL'
        WHEN NOT (NEW.quiet_until >= '1970-01-01 UTC' AND NEW.quiet_until < '9999-01-01 UTC') THEN
            format('quiet_until must be between 1970 and 9999, not %s', NEW.quiet_until)
        WHEN NEW.created_at IS NULL OR NOT isfinite(NEW.created_at) THEN
            'created_at must be a time: leave it out'
    END);
    IF refusal IS NULL AND (is_new OR NEW.labels IS DISTINCT FROM OLD.labels) THEN
        SELECT min(hybrid_monitors.refusal_of_label('labels.' || left(l.key, 100), l.value) COLLATE "C")
        INTO refusal FROM jsonb_each(NEW.labels) AS l;
    END IF;
    IF refusal IS NULL AND NEW.depends_on IS NOT NULL
        AND (is_new OR NEW.depends_on IS DISTINCT FROM OLD.depends_on) THEN
        refusal := hybrid_monitors.refusal_of_parent(NEW.id, NEW.depends_on);
    END IF;
    IF refusal IS NOT NULL THEN
        RAISE EXCEPTION 'services.%', refusal
            USING ERRCODE = 'check_violation', SCHEMA = 'hybrid_monitors', TABLE = 'services';
    END IF;
    RETURN NEW;
END
$$;
