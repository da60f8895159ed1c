-- find_circle: the kinds on a way on which they would follow each other's ends for ever, if these
--   were declared; no row: there is none.
-- $1 text[] names, $2 text[] on_ends
-- odd: what others have declared counts for a day after a worker last knew it.
WITH RECURSIVE ends AS (
    SELECT own.name, own.on_end
    FROM unnest($1::text[], $2::text[]) AS own (name, on_end)
    WHERE own.on_end IS NOT NULL
    UNION ALL
    SELECT k.name, k.on_end
    FROM hybrid_runner.kinds AS k
    WHERE k.on_end IS NOT NULL AND k.name <> ALL ($1) AND k.seen_at > clock_timestamp() - interval '1 day'
),
way AS (
    SELECT e.on_end AS next, ARRAY[e.name] AS names FROM ends AS e WHERE e.name = ANY ($1)
    UNION ALL
    SELECT e.on_end, w.names || e.name
    FROM way AS w
    INNER JOIN ends AS e ON e.name = w.next
    WHERE e.name <> ALL (w.names) AND cardinality(w.names) < 100
)
SELECT w.names || w.next AS names
FROM way AS w
WHERE w.next = w.names[1]
ORDER BY cardinality(w.names)
LIMIT 1
