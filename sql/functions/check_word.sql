-- check_word: an error unless this is one of these words, which says which one was meant.
CREATE OR REPLACE FUNCTION hybrid_runner.check_word(field text, given text, words text[]) RETURNS void
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    IF given IS NULL OR given <> ALL (words) THEN
        RAISE EXCEPTION '% must be % or %, not %', field,
            array_to_string(words[:cardinality(words) - 1], ', '), words[cardinality(words)],
            hybrid_runner.shown(given)
            || coalesce(': did you mean ' || hybrid_runner.nearest_word(given, words) || '?', '')
            USING ERRCODE = 'invalid_parameter_value';
    END IF;
END
$$;
