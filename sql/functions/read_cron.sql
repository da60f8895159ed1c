-- read_cron: the five fields of a cron expression; whatever is none of that is an error.
-- As Debian's cron has it: days and weekdays are both asked if one of the fields begins with a
-- star, and either will do if none does; and where minutes or hours begin with a star, real time
-- counts and not what clocks show.
CREATE OR REPLACE FUNCTION hybrid_runner.read_cron(
    cron text, OUT minutes integer[], OUT hours integer[], OUT days integer[], OUT months integer[],
    OUT weekdays integer[], OUT either_will_do boolean, OUT is_real_time boolean
)
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    words CONSTANT text[] := ARRAY[
        '@hourly', '@daily', '@midnight', '@weekly', '@monthly', '@yearly', '@annually'];
    fields text[];
BEGIN
    IF cron IS NULL OR octet_length(cron) > 255 THEN
        RAISE EXCEPTION 'cron: an expression has at most 255 bytes, not %', coalesce(octet_length(cron)::text, 'NULL')
            USING ERRCODE = 'invalid_parameter_value';
    END IF;
    cron := btrim(cron, E' \t');
    IF left(cron, 1) = '@' THEN
        fields := CASE lower(cron)
            WHEN '@hourly' THEN '{0,*,*,*,*}' WHEN '@daily' THEN '{0,0,*,*,*}'
            WHEN '@midnight' THEN '{0,0,*,*,*}' WHEN '@weekly' THEN '{0,0,*,*,0}'
            WHEN '@monthly' THEN '{0,0,1,*,*}' WHEN '@yearly' THEN '{0,0,1,1,*}'
            WHEN '@annually' THEN '{0,0,1,1,*}'
        END;
        IF fields IS NULL THEN
            RAISE EXCEPTION 'cron: there is no %', hybrid_runner.shown(cron) || coalesce(
                ': did you mean ' || hybrid_runner.nearest_word(cron, words) || '?',
                ': give one of ' || array_to_string(words, ', '))
                USING ERRCODE = 'invalid_parameter_value';
        END IF;
    ELSE
        fields := regexp_split_to_array(cron, '[ \t]+');
        IF cardinality(fields) <> 5 OR cron = '' THEN
            RAISE EXCEPTION 'cron: five fields are needed (minute hour day month weekday), not %',
                CASE WHEN cron = '' THEN 0 ELSE cardinality(fields) END
                || CASE WHEN cardinality(fields) = 6 THEN ': below a minute use every' ELSE '' END
                USING ERRCODE = 'invalid_parameter_value';
        END IF;
    END IF;
    minutes := hybrid_runner.read_cron_field('minute', fields[1], 0, 59);
    hours := hybrid_runner.read_cron_field('hour', fields[2], 0, 23);
    days := hybrid_runner.read_cron_field('day', fields[3], 1, 31);
    months := hybrid_runner.read_cron_field(
        'month', fields[4], 1, 12, '{JAN,FEB,MAR,APR,MAY,JUN,JUL,AUG,SEP,OCT,NOV,DEC}');
    weekdays := hybrid_runner.read_cron_field(
        'weekday', fields[5], 0, 7, '{SUN,MON,TUE,WED,THU,FRI,SAT}');
    IF 7 = ANY (weekdays) THEN
        weekdays := array_remove(array_prepend(0, array_remove(weekdays, 0)), 7);
    END IF;
    either_will_do := left(fields[3], 1) <> '*' AND left(fields[5], 1) <> '*';
    is_real_time := left(fields[1], 1) = '*' OR left(fields[2], 1) = '*';
END
$$;
