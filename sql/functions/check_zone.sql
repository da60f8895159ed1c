-- check_zone: an error unless this is the name of a time zone. Postgres would also take
-- abbreviations, which know no summer (CET is an hour ahead of UTC all the year), and whatever
-- POSIX makes of a word with a number.
CREATE OR REPLACE FUNCTION hybrid_runner.check_zone(zone text) RETURNS void
LANGUAGE plpgsql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    meant text;
BEGIN
    IF zone = 'UTC' THEN
        RETURN;
    END IF;
    IF octet_length(zone) BETWEEN 1 AND 64 THEN
        BEGIN
            PERFORM timezone(zone, timestamptz '2025-01-01 UTC');
            -- All names are read from files, which takes long: only for those that may be none.
            IF zone ~ '^[A-Za-z_]+/[A-Za-z_/]+$' AND zone !~* '^(posix|right)/'
                OR zone !~ '^[+:<-]' AND zone !~* '^(posix|right)/' AND EXISTS (
                    SELECT FROM pg_timezone_names AS n WHERE lower(n.name) = lower(zone)
                ) AND (lower(zone) IN ('utc', 'gmt') OR NOT EXISTS (
                    SELECT FROM pg_timezone_abbrevs AS a WHERE lower(a.abbrev) = lower(zone)
                )) THEN
                RETURN;
            END IF;
        EXCEPTION
            WHEN invalid_parameter_value THEN
                meant := hybrid_runner.nearest_word(zone, ARRAY(
                    SELECT n.name FROM pg_timezone_names AS n WHERE n.name LIKE '%/%'
                        AND n.name !~ '^(posix|right|Etc)/'
                    ORDER BY n.name
                ));
        END;
    END IF;
    RAISE EXCEPTION 'timezone: there is no %: %', hybrid_runner.shown(zone), CASE
        WHEN meant IS NULL THEN 'name a place, such as Europe/Paris, or UTC'
        ELSE 'did you mean ' || quote_literal(meant) || '?'
    END USING ERRCODE = 'invalid_parameter_value';
END
$$;
