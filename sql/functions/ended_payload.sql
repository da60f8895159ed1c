-- ended_payload: what the job is given that runs when another one has ended (on_end).
-- As any payload it has 1 MiB of text at most: above that, what was carried is left out, in this
-- order, and left_out says so.
CREATE OR REPLACE FUNCTION hybrid_runner.ended_payload(
    id bigint, kind text, key text, state text, payload jsonb, data jsonb, result jsonb, errors jsonb
) RETURNS jsonb
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    part text;
    -- What a handler says after somebody has cancelled its job does not hide why.
    why text := CASE WHEN state = 'cancelled' AND jsonb_typeof(errors) = 'array' THEN (
        SELECT e.error ->> 'message'
        FROM jsonb_array_elements(errors) WITH ORDINALITY AS e (error, place)
        WHERE e.error ->> 'type' = 'Cancel'
        ORDER BY e.place DESC LIMIT 1
    ) END;
    left_out text[] := '{}';
    said jsonb := jsonb_build_object(
        'id', id, 'kind', kind, 'key', key, 'state', state,
        'reason', CASE WHEN state <> 'completed' THEN left(coalesce(why, errors -> -1 ->> 'message'), 4096) END,
        'payload', payload, 'data', data, 'result', result, 'errors', coalesce(errors, '[]'));
BEGIN
    FOREACH part IN ARRAY ARRAY['result', 'data', 'errors', 'payload'] LOOP
        EXIT WHEN octet_length(said::text) <= 1048576;
        CONTINUE WHEN said -> part IN ('null', '[]');
        left_out := left_out || part;
        said := said || jsonb_build_object(
            part, CASE part WHEN 'errors' THEN jsonb '[]' END, 'left_out', left_out);
    END LOOP;
    RETURN said;
END
$$;
