-- similar_kind: the declared kind that was most likely meant by one that is not; NULL: the kind is
-- declared, or none is like it. Alike are names that differ in one letter, in the order of two, in
-- capitals, or in what stands between words; not those that differ in digits alone: poll-2 follows
-- poll-1.
CREATE OR REPLACE FUNCTION hybrid_runner.similar_kind(kind text) RETURNS text
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_column
DECLARE
    given text := translate(lower(similar_kind.kind), '_.:/-', '');
    -- Words that are one letter apart, or two of whose letters changed places, have the same
    -- beginning or the same end, which is asked first: it costs far less.
    half integer := greatest(1, (length(given) - 2) / 2);
    meant text;
BEGIN
    IF length(similar_kind.kind) > 128 OR EXISTS (
        SELECT FROM hybrid_runner.kinds AS k WHERE k.name = similar_kind.kind
    ) THEN
        RETURN NULL;
    END IF;
    SELECT its.name INTO meant
    FROM (
        SELECT k.name, translate(lower(k.name), '_.:/-', '') AS bare
        FROM hybrid_runner.kinds AS k ORDER BY k.name LIMIT 1000
    ) AS its
    WHERE CASE
        WHEN its.bare = given THEN true
        WHEN length(given) < 4 OR abs(length(its.bare) - length(given)) > 1 THEN false
        WHEN left(its.bare, half) <> left(given, half) AND right(its.bare, half) <> right(given, half)
            THEN false
        WHEN translate(its.bare, '0123456789', '') = translate(given, '0123456789', '') THEN false
        ELSE (
            SELECT
                substr(its.bare, d.at + 1) IN (substr(given, d.at), substr(given, d.at + 1))
                OR substr(its.bare, d.at) = substr(given, d.at + 1)
                OR substr(its.bare, d.at)
                    = substr(given, d.at + 1, 1) || substr(given, d.at, 1) || substr(given, d.at + 2)
            FROM (
                SELECT min(n) AS at FROM generate_series(1, length(given) + 1) AS n
                WHERE substr(its.bare, n, 1) <> substr(given, n, 1)
            ) AS d
        )
    END
    ORDER BY its.bare = given DESC, its.name
    LIMIT 1;
    RETURN meant;
END
$$;
