-- check_window: the trigger on windows that refuses in one line, naming the column.
-- There may be a thousand: each round looks through all.
CREATE OR REPLACE FUNCTION hybrid_monitors.check_window() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    most CONSTANT integer := 1000;
    refusal text;
BEGIN
    refusal := CASE
        WHEN num_nonnulls(NEW.service_id, NEW.label) <> 1 THEN
            'service_id or label must be given, not both: label {} is all services'
        WHEN NEW.label IS NOT NULL AND jsonb_typeof(NEW.label) <> 'object' THEN
            'label must be an object, such as {"team": "billing"}'
        WHEN octet_length(NEW.label::text) > 1024 THEN
            'label has more than 1024 bytes of JSON: make it shorter'
        WHEN (NEW.begins >= '1970-01-01 UTC' AND NEW.begins < '9999-01-01 UTC') IS NOT TRUE THEN
            'begins must be between 1970 and 9999, not ' || coalesce(NEW.begins::text, 'NULL')
        WHEN (NEW.ends > NEW.begins AND NEW.ends < '9999-01-01 UTC') IS NOT TRUE THEN
            'ends must be later than begins, not ' || coalesce(NEW.ends::text, 'NULL')
        WHEN char_length(NEW.reason) > 1000 THEN
            'reason has more than 1000 characters: make it shorter'
        WHEN NEW.every IS NOT NULL THEN coalesce(
            hybrid_monitors.refusal_of_interval(
                'every', NEW.every, interval '1 min', interval '366 days', '1m and 366 days'),
            CASE WHEN extract(epoch FROM NEW.every)
                <= extract(epoch FROM NEW.ends) - extract(epoch FROM NEW.begins)
                THEN 'every must be longer than from begins to ends' END)
    END;
    IF refusal IS NULL AND NEW.label IS NOT NULL THEN -- as labels of services are
        SELECT min(hybrid_monitors.refusal_of_label('label.' || left(l.key, 100), l.value) COLLATE "C")
        INTO refusal FROM jsonb_each(NEW.label) AS l;
    END IF;
    IF refusal IS NULL AND TG_OP = 'INSERT' AND (
        SELECT count(*) FROM (SELECT FROM hybrid_monitors.windows LIMIT most) AS w
    ) = most THEN
        refusal := format('id: there are %s already: delete those that are over', most);
    END IF;
    IF refusal IS NOT NULL THEN
        RAISE EXCEPTION 'windows.%', refusal
            USING ERRCODE = 'check_violation', SCHEMA = 'hybrid_monitors', TABLE = 'windows';
    END IF;
    RETURN NEW;
END
$$;
