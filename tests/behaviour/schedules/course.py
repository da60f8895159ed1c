"""A course of many schedules that fire every second, and what became of their ticks."""

from __future__ import annotations

from typing import NamedTuple

from hybrid_runner.storage.connections.connection import Connection

BEGIN = """
    INSERT INTO hybrid_runner.schedules (name, kind, every, starts_at, ends_at, overlap, missed)
    SELECT 'course-' || n, 'tick', '1 second', s.at, s.at + make_interval(secs => $2 - 0.5),
        'allow', 'all'
    FROM generate_series(1, $1::int) AS n
    CROSS JOIN (
        SELECT date_trunc('second', clock_timestamp()) + make_interval(secs => $3) AS at
    ) AS s
"""
LEFT = """
    SELECT (SELECT count(*) FROM hybrid_runner.schedules WHERE next_at IS NOT NULL)
        + (SELECT count(*) FROM hybrid_runner.jobs)
"""
JUDGED = """
    WITH made AS (
        SELECT a.schedule, a.tick, a.created_at, a.state FROM hybrid_runner.archive AS a
        UNION ALL
        SELECT j.schedule, j.tick, j.created_at, j.state FROM hybrid_runner.jobs AS j
    ),
    wanted AS (
        SELECT s.name, t.tick
        FROM hybrid_runner.schedules AS s
        CROSS JOIN LATERAL generate_series(s.starts_at, s.ends_at, s.every) AS t (tick)
    ),
    late AS (
        SELECT extract(epoch FROM m.created_at - m.tick)::float8 * 1000 AS ms FROM made AS m
    )
    SELECT
        (SELECT count(*) FROM wanted)::int AS wanted,
        (SELECT count(*) FROM made)::int AS made,
        (
            SELECT count(*)
            FROM (SELECT schedule, tick FROM made GROUP BY 1, 2 HAVING count(*) > 1) AS d
        )::int AS double,
        (
            SELECT count(*) FROM wanted AS w
            WHERE NOT EXISTS (SELECT FROM made AS m WHERE (m.schedule, m.tick) = (w.name, w.tick))
        )::int AS missing,
        (
            SELECT count(*) FROM made AS m
            WHERE NOT EXISTS (SELECT FROM wanted AS w WHERE (m.schedule, m.tick) = (w.name, w.tick))
        )::int AS unwanted,
        (SELECT count(*) FROM made AS m WHERE m.state <> 'completed')::int AS undone,
        (
            SELECT percentile_cont(ARRAY[0.5, 0.95, 0.99, 1]) WITHIN GROUP (ORDER BY l.ms)
            FROM late AS l
        ) AS late_ms
"""


class Judgement(NamedTuple):
    """What became of the ticks of all schedules."""

    wanted: int
    made: int
    double: int
    """Ticks with more than one job."""
    missing: int
    """Ticks without one."""
    unwanted: int
    """Jobs whose tick is none of their schedule's."""
    undone: int
    late_ms: tuple[float, ...]
    """From the tick until its job was made: half of them, 95 %, 99 %, and the latest."""

    @property
    def once(self) -> bool:
        """Whether each tick has made exactly one job."""
        return self.wanted == self.made and not (self.double or self.missing or self.unwanted)


async def begin(connection: Connection, schedules: int, seconds: int, after: float = 2.0) -> None:
    """So many schedules fire so often, each second, beginning in `after` seconds at the latest."""
    await connection.execute(BEGIN, schedules, float(seconds), after)


async def left(connection: Connection) -> int:
    """How many schedules have ticks to come, and jobs that have not ended."""
    return int(await connection.fetchval(LEFT))


async def judge(connection: Connection) -> Judgement:
    """Look at what was made."""
    row = await connection.fetchrow(JUDGED)
    assert row is not None
    counts = {name: row[name] for name in Judgement._fields[:-1]}
    return Judgement(**counts, late_ms=tuple(row["late_ms"] or ()))
