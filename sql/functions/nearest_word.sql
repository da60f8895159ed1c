-- nearest_word: the one of these words that was most likely meant by one that is none of them:
-- it is the same but for capitals and what stands between words, or its end, or it differs in one
-- letter or in the order of two. NULL: none is like it.
CREATE OR REPLACE FUNCTION hybrid_runner.nearest_word(given text, words text[]) RETURNS text
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    bare text := regexp_replace(lower(left(given, 100)), '[^a-z0-9+]', '', 'g');
    word text;
    other text;
    at integer;
    best text;
    best_rank integer := 9;
    rank integer;
BEGIN
    IF length(bare) < 2 THEN
        RETURN NULL;
    END IF;
    FOREACH word IN ARRAY nearest_word.words LOOP
        other := regexp_replace(lower(word), '[^a-z0-9+]', '', 'g');
        rank := 9;
        IF other = bare THEN
            rank := 1;
        ELSIF length(bare) >= 4 AND lower(word) LIKE '%/' || replace(lower(left(given, 100)), ' ', '\_') THEN
            rank := 2;
        ELSIF abs(length(other) - length(bare)) <= 1 THEN
            -- the first place in which they differ; behind it one edit has to make them equal
            at := 1;
            WHILE substr(other, at, 1) = substr(bare, at, 1) AND at <= length(bare) LOOP
                at := at + 1;
            END LOOP;
            IF substr(other, at) = substr(bare, at + 1) OR substr(other, at + 1) = substr(bare, at)
                OR substr(other, at + 1) = substr(bare, at + 1)
                OR (substr(other, at, 1) = substr(bare, at + 1, 1)
                    AND substr(other, at + 1, 1) = substr(bare, at, 1)
                    AND substr(other, at + 2) = substr(bare, at + 2)) THEN
                rank := 3;
            END IF;
        END IF;
        IF rank < best_rank THEN
            best := word;
            best_rank := rank;
        END IF;
    END LOOP;
    RETURN best;
END
$$;
