-- refusal_of_url: what is wrong with an address, in one line; NULL: nothing.
CREATE OR REPLACE FUNCTION hybrid_monitors.refusal_of_url(url text) RETURNS text
LANGUAGE plpgsql IMMUTABLE STRICT SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    place text;
    host text;
    port text;
BEGIN
    IF octet_length(url) > 2048 THEN
        RETURN 'url has more than 2048 bytes: make it shorter';
    ELSIF url ~ '[\s[:cntrl:]\\\u0080-\u00a0\u1680\u2000-\u200f\u2028-\u202f\u205f-\u206f\u3000\ufeff]' THEN
        RETURN 'url has a blank or a control character in it: write it as %20 or leave it out';
    END IF;
    place := substring(url FROM '^[Hh][Tt][Tt][Pp][Ss]?://([^/?#]+)');
    host := substring(regexp_replace(place, '^.*@', '') FROM '^(\[[0-9A-Fa-f:.]+\]|[^]:[]+)(?::.*)?$');
    IF host IS NULL THEN
        RETURN 'url must begin with http:// or https:// and name a host';
    ELSIF place LIKE '%@%' THEN
        RETURN 'url has a user or password in it: put it into headers, as a secret';
    ELSIF octet_length(host) > 253 THEN
        RETURN 'url has a host of more than 253 bytes: make it shorter';
    END IF;
    port := substring(place FROM char_length(host) + 2);
    IF place LIKE '%:' OR (port <> '' AND (port !~ '^[0-9]{1,5}$' OR port::integer NOT BETWEEN 1 AND 65535)) THEN
        RETURN 'url has a port that is not 1 to 65535';
    END IF;
    RETURN NULL;
END
$$;
