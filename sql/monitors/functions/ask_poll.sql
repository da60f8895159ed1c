-- ask_poll: ask for a poll of this service now, whatever its due time and its breaker; returns its
-- id. Refused in one line when it is paused, asked for already, or being polled.
CREATE OR REPLACE FUNCTION hybrid_monitors.ask_poll(name text) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
SET lock_timeout = '1s'
AS $$
#variable_conflict use_column
DECLARE
    wanted record;
    its_name text := quote_literal(left(ask_poll.name, 200));
BEGIN
    SELECT s.id, s.host, s.active INTO wanted
    FROM hybrid_monitors.services AS s WHERE s.name = ask_poll.name;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'there is no service called %', coalesce(its_name, 'NULL')
            USING ERRCODE = 'invalid_parameter_value';
    ELSIF NOT wanted.active THEN
        RAISE EXCEPTION 'service % is paused: resume it first', its_name
            USING ERRCODE = 'invalid_parameter_value';
    ELSIF EXISTS (
        SELECT FROM hybrid_monitors.hosts AS h
        JOIN hybrid_runner.jobs AS j ON j.id = h.round_job AND j.claim = h.round_claim
        WHERE h.host = wanted.host AND j.state = 'running' AND wanted.id = ANY (h.round_services)
    ) THEN
        RAISE EXCEPTION 'a poll of service % is on its way: wait for its answer', its_name
            USING ERRCODE = 'invalid_parameter_value';
    END IF;
    INSERT INTO hybrid_monitors.asked (service_id) VALUES (wanted.id)
    ON CONFLICT (service_id) DO NOTHING;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'a poll of service % is asked for already: wait for its answer', its_name
            USING ERRCODE = 'invalid_parameter_value';
    END IF;
    PERFORM hybrid_monitors.services_changed(ARRAY[wanted.host]);
    RETURN wanted.id;
EXCEPTION WHEN lock_not_available THEN
    RAISE EXCEPTION 'a poll of service % is asked for in a transaction that is still open: try '
        'again once it has ended', its_name
        USING ERRCODE = 'invalid_parameter_value';
END
$$;
