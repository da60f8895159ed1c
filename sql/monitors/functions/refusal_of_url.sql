-- refusal_of_url: what is wrong with an address, in one line; NULL: nothing.
CREATE OR REPLACE FUNCTION hybrid_monitors.refusal_of_url(url text) RETURNS text
LANGUAGE plpgsql IMMUTABLE STRICT SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    place CONSTANT text := substring(url FROM '^[Hh][Tt][Tt][Pp][Ss]?://([^/?#]+)');
    host CONSTANT text := substring(place FROM '^(\[[0-9A-Za-z:.%]+\]|[^]:[]+)(?::[0-9]*)?$');
    port CONSTANT text := substring(place FROM ':([0-9]*)$');
BEGIN
    IF octet_length(url) > 2048 THEN
        RETURN 'url has more than 2048 bytes: make it shorter';
    ELSIF url ~ '[\u0001-\u0020\u007f\\]' THEN
        RETURN 'url has a blank or a control character in it: write it as %20 or leave it out';
    ELSIF place LIKE '%@%' THEN
        RETURN 'url has a user or password in it: put it into headers, as a secret';
    ELSIF host IS NULL AND place ~ '^[^]:[]+:[^]:]*$' THEN
        RETURN 'url has a port that is not 1 to 65535';
    ELSIF host IS NULL THEN
        RETURN 'url must begin with http:// or https:// and name a host';
    ELSIF octet_length(host) > 253 THEN
        RETURN 'url has a host of more than 253 bytes: make it shorter';
    ELSIF place <> host AND (port = '' OR left(port, 6)::integer NOT BETWEEN 1 AND 65535) THEN
        RETURN 'url has a port that is not 1 to 65535';
    END IF;
    RETURN NULL;
END
$$;
