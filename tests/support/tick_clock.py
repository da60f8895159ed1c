"""A clock for schedules that a test sets, and what to look at when they have fired."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from hybrid_runner.storage.connections.connection import Connection

NOON = datetime(2026, 6, 10, 12, tzinfo=UTC)
"""A Wednesday."""
HOUR = timedelta(hours=1)
MINUTE = timedelta(minutes=1)
_SET_UP = """
CREATE TABLE public.moment (at timestamptz NOT NULL);
INSERT INTO public.moment VALUES ('2026-06-10 12:00 UTC');
CREATE OR REPLACE FUNCTION hybrid_runner.tick_clock() RETURNS timestamptz
LANGUAGE sql VOLATILE AS 'SELECT m.at FROM public.moment AS m';
"""


class Schedules:
    """The schedules of one database, by a clock that stands still."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection

    async def begin(self) -> Schedules:
        """From now on it is noon."""
        await self.connection.execute(_SET_UP)
        return self

    async def at(self, moment: datetime) -> None:
        """Set the clock."""
        await self.connection.execute("UPDATE public.moment SET at = $1", moment)

    async def store(self, name: str = "s", **options: Any) -> datetime | None:
        """A schedule, by schedule()."""
        options = {"kind": "work", **options}
        words = ", ".join(f"{key} => ${place}" for place, key in enumerate(options, 2))
        found: datetime | None = await self.connection.fetchval(
            f"SELECT hybrid_runner.schedule($1, {words})", name, *options.values()
        )
        return found

    async def fire(self, moment: datetime | None = None) -> dict[str, int]:
        """Ticks by outcome."""
        if moment is not None:
            await self.at(moment)
        rows = await self.connection.fetch("SELECT * FROM hybrid_runner.fire_schedules()")
        return {row["outcome"]: row["ticks"] for row in rows}

    async def row(self, name: str = "s") -> Any:
        """What stands in the table."""
        return await self.connection.fetchrow(
            "SELECT * FROM hybrid_runner.schedules WHERE name = $1", name
        )

    async def ticks(self, name: str = "s") -> list[datetime | None]:
        """Those of its live jobs, in the order in which they were stored."""
        return [
            row["tick"]
            for row in await self.connection.fetch(
                "SELECT tick FROM hybrid_runner.jobs WHERE schedule = $1 ORDER BY id", name
            )
        ]

    async def run(self, name: str = "s") -> int:
        """A worker claims its oldest job; its id."""
        found: int = await self.connection.fetchval(
            "UPDATE hybrid_runner.jobs SET state = 'running', claim = id, worker_id = 'w',"
            " started_at = clock_timestamp(), attempt = 1 WHERE id = (SELECT min(id) FROM"
            " hybrid_runner.jobs WHERE schedule = $1) RETURNING id",
            name,
        )
        return found

    async def end(self, job_id: int, on: Connection | None = None) -> None:
        """A worker finishes it."""
        await (on or self.connection).execute(
            "SELECT hybrid_runner.end_jobs(ARRAY[$1::int8], ARRAY[$1::int8], NULL, NULL, NULL)",
            job_id,
        )

    async def worker(self, declares: list[str], worker_id: str = "w") -> None:
        """One that lives."""
        await self.connection.execute(
            "INSERT INTO hybrid_runner.workers (id, host, pid, version, queues, schedules)"
            " VALUES ($1, 'h', 1, '1', '{}', $2) ON CONFLICT (id) DO UPDATE SET"
            " schedules = excluded.schedules, heartbeat_at = clock_timestamp(), dead_at = NULL",
            worker_id,
            declares,
        )
