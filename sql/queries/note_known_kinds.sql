-- note_known_kinds: note of each kind that a live worker knows that it was seen; delete what was
--   not for so long.
-- $1 interval forgotten_after
-- odd: a row that somebody holds is left alone.
WITH known AS MATERIALIZED (
    SELECT DISTINCT n.name
    FROM hybrid_runner.workers AS w
    CROSS JOIN LATERAL unnest(w.kinds) AS n (name)
    WHERE w.dead_at IS NULL AND w.heartbeat_at + w.lease > clock_timestamp()
),
seen AS (
    UPDATE hybrid_runner.kinds AS k SET seen_at = clock_timestamp()
    WHERE k.name IN (
        SELECT q.name FROM hybrid_runner.kinds AS q
        WHERE q.seen_at NOT BETWEEN clock_timestamp() - interval '1 hour' AND clock_timestamp()
            AND q.name IN (SELECT n.name FROM known AS n)
        FOR UPDATE SKIP LOCKED
    )
)
DELETE FROM hybrid_runner.kinds AS k
WHERE k.name IN (
    SELECT q.name FROM hybrid_runner.kinds AS q
    WHERE q.seen_at < clock_timestamp() - $1::interval AND q.name NOT IN (SELECT n.name FROM known AS n)
    FOR UPDATE SKIP LOCKED
)
