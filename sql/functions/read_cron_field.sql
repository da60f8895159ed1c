-- read_cron_field: the numbers that one field of a cron expression names, in order. Of days, `L` is
-- 32, `LW` is 33, `5W` is 105; of weekdays, `5#2` (the second Friday of the month) is 25, and `5L`
-- (the last one) is 95.
CREATE OR REPLACE FUNCTION hybrid_runner.read_cron_field(
    field text, given text, lowest integer, highest integer, names text[] DEFAULT NULL
) RETURNS integer[]
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE
AS $$
DECLARE
    part text;
    found text[];
    first integer;
    last integer;
    step integer;
    numbers integer[] := '{}';
    word text;
    meant text;
BEGIN
    IF given OPERATOR(pg_catalog.=) '*' THEN
        RETURN ARRAY(SELECT n FROM pg_catalog.generate_series(lowest, highest) AS n);
    END IF;
    FOREACH part IN ARRAY pg_catalog.string_to_array(pg_catalog.upper(given), ',') LOOP
        IF part ~ '^\d\d?$' THEN -- most are just that
            first := part;
            last := first;
            step := 1;
        ELSIF field = 'day' AND part IN ('L', 'LW') THEN
            numbers := numbers || CASE part WHEN 'L' THEN 32 ELSE 33 END;
            CONTINUE;
        ELSIF field = 'day' AND part ~ '^\d\d?W$' AND pg_catalog.rtrim(part, 'W')::integer BETWEEN 1 AND 31 THEN
            numbers := numbers || 100 + pg_catalog.rtrim(part, 'W')::integer;
            CONTINUE;
        ELSE
            found := pg_catalog.regexp_match(
                part, '^(?:(\*)|(\d{1,2}|[A-Z]+)(?:-(\d{1,2}|[A-Z]+)|(#[1-5]|L)(?!/))?)(?:/(\d{1,2}))?$');
            IF found IS NULL OR (found[4] IS NOT NULL AND field <> 'weekday') THEN
                RAISE EXCEPTION 'cron: % % is none of *, n, n-m, with /step, and lists of these',
                    field, hybrid_runner.shown(part) USING ERRCODE = 'invalid_parameter_value';
            END IF;
            FOR place IN 2..3 LOOP
                word := found[place];
                CONTINUE WHEN word IS NULL OR word ~ '^\d';
                found[place] := pg_catalog.array_position(names, word) - 1 + lowest;
                -- A week may end with its Sunday: FRI-SUN.
                IF place = 3 AND word = 'SUN' THEN
                    found[place] := '7';
                END IF;
                IF found[place] IS NULL THEN
                    meant := hybrid_runner.nearest_word(word, names);
                    RAISE EXCEPTION 'cron: % % is no %', field, hybrid_runner.shown(word),
                        CASE WHEN names IS NULL THEN 'number' ELSE 'name' END
                        || coalesce(': did you mean ' || meant || '?', '')
                        USING ERRCODE = 'invalid_parameter_value';
                END IF;
            END LOOP;
            first := coalesce(found[2]::integer, lowest);
            step := coalesce(found[5]::integer, 1);
            last := CASE
                WHEN found[3] IS NOT NULL THEN found[3]::integer
                WHEN found[1] IS NOT NULL OR found[5] IS NOT NULL THEN highest
                ELSE first
            END;
            IF step = 0 THEN
                RAISE EXCEPTION 'cron: % % steps by nothing: at least /1', field,
                    hybrid_runner.shown(part) USING ERRCODE = 'invalid_parameter_value';
            END IF;
        END IF;
        IF first < lowest OR first > highest OR last > highest THEN
            RAISE EXCEPTION 'cron: % % is outside % to %', field, hybrid_runner.shown(part), lowest, highest
                USING ERRCODE = 'invalid_parameter_value';
        END IF;
        IF first > last THEN
            RAISE EXCEPTION 'cron: % % runs backwards: write %-%,%-%', field,
                hybrid_runner.shown(part), first, highest - CASE field WHEN 'weekday' THEN 1 ELSE 0 END, lowest, last
                USING ERRCODE = 'invalid_parameter_value';
        END IF;
        IF found[4] IS NOT NULL THEN
            numbers := numbers || first % 7
                + CASE found[4] WHEN 'L' THEN 90 ELSE 10 * pg_catalog.substr(found[4], 2)::integer END;
            found := NULL;
        ELSE
            numbers := numbers || ARRAY(SELECT n FROM pg_catalog.generate_series(first, last, step) AS n);
        END IF;
    END LOOP;
    RETURN ARRAY(SELECT DISTINCT n FROM pg_catalog.unnest(numbers) AS n ORDER BY n);
END
$$;
