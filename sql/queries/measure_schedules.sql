-- measure_schedules: how schedules do as a whole, for metrics and health.
-- $1 int8 most
-- odd: of those that are in disorder $1 are named, in the order of their names.
-- odd: who lives is said by the tables, as fire_schedules has it; a kind that no live worker ever
--   declared may still be known to one that starts now, so it is a warning.
WITH live AS MATERIALIZED (
    SELECT w.kinds, w.schedules
    FROM hybrid_runner.workers AS w
    WHERE w.dead_at IS NULL AND w.heartbeat_at + w.lease > clock_timestamp()
),
-- once for all: there may be many schedules, workers and kinds
known AS MATERIALIZED (
    SELECT DISTINCT k.name FROM live AS l CROSS JOIN LATERAL unnest(l.kinds) AS k (name) WHERE k.name IS NOT NULL
),
declared AS MATERIALIZED (
    SELECT DISTINCT d.name FROM live AS l CROSS JOIN LATERAL unnest(l.schedules) AS d (name) WHERE d.name IS NOT NULL
),
stood AS MATERIALIZED (
    SELECT
        s.name, s.kind, s.paused_at IS NOT NULL AS is_paused, s.note,
        s.declared AND s.name NOT IN (SELECT d.name FROM declared AS d) AS is_undeclared,
        s.kind NOT IN (SELECT k.name FROM known AS k) AS is_unknown,
        s.next_at,
        CASE WHEN isfinite(s.next_at) THEN extract(epoch FROM s.next_at - clock_timestamp())::float8 END AS next_in
    FROM hybrid_runner.schedules AS s
),
active AS MATERIALIZED (
    SELECT s.name, s.kind, s.is_unknown, s.next_at, s.next_in
    FROM stood AS s
    WHERE NOT s.is_paused AND NOT s.is_undeclared
)
SELECT
    (SELECT count(*) FROM active AS a WHERE a.next_at IS NOT NULL)::int4 AS active,
    (SELECT count(*) FROM stood AS s WHERE s.is_paused)::int4 AS paused,
    (SELECT count(*) FROM stood AS s WHERE s.is_undeclared AND NOT s.is_paused)::int4 AS undeclared,
    (SELECT min(a.next_in) FROM active AS a) AS next_in,
    (SELECT count(*) FROM active AS a WHERE a.next_in < -60)::int4 AS overdue,
    (SELECT a.name FROM active AS a WHERE a.next_in < -60 ORDER BY a.next_in LIMIT 1) AS latest,
    ARRAY(
        SELECT s.name FROM stood AS s WHERE s.is_paused AND s.note IS NOT NULL ORDER BY s.name LIMIT $1
    ) AS failed,
    ARRAY(
        SELECT a.name || ' (' || a.kind || ')'
        FROM active AS a
        WHERE a.is_unknown AND a.next_at IS NOT NULL
        ORDER BY a.name
        LIMIT $1
    ) AS unknown_kinds
