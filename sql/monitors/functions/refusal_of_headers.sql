-- refusal_of_headers: what is wrong with the headers of a service, in one line; NULL: nothing.
CREATE OR REPLACE FUNCTION hybrid_monitors.refusal_of_headers(headers jsonb) RETURNS text
LANGUAGE plpgsql IMMUTABLE STRICT SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    header record;
    place text;
BEGIN
    IF jsonb_typeof(headers) <> 'object' THEN
        RETURN 'headers must be an object';
    ELSIF octet_length(headers::text) > 8192 THEN
        RETURN 'headers has more than 8192 bytes of JSON: make it shorter';
    ELSIF (SELECT count(*) FROM jsonb_object_keys(headers)) > 64 THEN
        RETURN 'headers has more than 64 entries';
    END IF;
    FOR header IN
        SELECT h.key, h.value, lower(h.key COLLATE "C") AS low,
            count(*) OVER (PARTITION BY lower(h.key COLLATE "C") ORDER BY h.key COLLATE "C") > 1 AS again
        FROM jsonb_each(headers) AS h
        ORDER BY h.key COLLATE "C"
    LOOP
        place := 'headers.' || left(header.key, 100);
        IF header.key !~ '^[A-Za-z0-9!#$%&''*+.^_`|~-]{1,100}$' THEN
            RETURN place || ' is no name of a header: use letters, digits and -';
        ELSIF header.low IN (
            'host', 'connection', 'content-length', 'transfer-encoding', 'accept-encoding',
            'upgrade', 'te', 'trailer', 'expect', 'keep-alive', 'proxy-authorization',
            'proxy-connection'
        ) THEN
            RETURN place || ' is set by the poller: leave it out';
        ELSIF header.again THEN
            RETURN place || ' is given twice';
        ELSIF jsonb_typeof(header.value) <> 'string' OR char_length(header.value #>> '{}') > 2000 THEN
            RETURN place || ' must be a text of up to 2000 characters';
        ELSIF header.value #>> '{}' ~ '[\u0001-\u0008\u000a-\u001f\u007f\u0100-\U0010ffff]' THEN
            RETURN place || ' has a character that no header can hold: use printable ASCII';
        END IF;
    END LOOP;
    RETURN NULL;
END
$$;
