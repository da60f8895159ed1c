"""Disorderly producers, and the app of the workers that face them. All chance comes from one
seed.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta

from hybrid_runner import Runner
from hybrid_runner.storage.connections.connection import Connection, connect

PRODUCERS = 16

_INSERT = """
INSERT INTO hybrid_runner.jobs (kind, priority, payload, run_at)
SELECT 'nap', $1, jsonb_build_object('seconds', $2::float8), clock_timestamp() + $3::interval
FROM generate_series(1, $4::int)
RETURNING id, run_at
"""


def add_nap(app: Runner) -> None:
    """What all workers can run: a moment's sleep."""

    @app.job("nap")
    async def nap(payload: dict[str, float]) -> None:
        await asyncio.sleep(payload["seconds"])


app = Runner()
add_nap(app)


@dataclass(frozen=True)
class Series:
    """Some transactions, one after the other begins."""

    transactions: int
    pause: float = 0
    """Seconds before each of them, at most."""
    held: float = 0
    """Share of them that stay open for a while after their insert."""


@dataclass(frozen=True)
class Style:
    """How producers behave for a while; then there is silence."""

    name: str
    series: tuple[Series, ...]


QUICK = Series(30, pause=0.004)
"""Enough to make somebody mute the bell."""

STYLES = (
    Style("a burst", (Series(120, pause=0.004, held=0.1),)),
    Style("around the threshold", (Series(25, pause=0.06, held=0.3),)),
    Style("a trickle", (Series(6, pause=0.25, held=0.3),)),
    Style("told to be quiet, committed late", (QUICK, Series(10, pause=0.005, held=0.9))),
    Style("one more as they fall asleep", (QUICK, Series(1, pause=0.6, held=0.3))),
    Style("a few committed while they fall asleep", (QUICK, Series(3, pause=0.01, held=1))),
)


class Producers:
    """Insert in transactions of all kinds; remember from when on each job could have been started,
    by the server's clock.
    """

    def __init__(self, connections: list[Connection], chance: random.Random) -> None:
        self.startable: dict[int, datetime] = {}
        self._free: asyncio.Queue[Connection] = asyncio.Queue()
        for connection in connections:
            self._free.put_nowait(connection)
        self._chance = chance

    async def insert(self, *series: Series) -> None:
        """Return when all transactions have ended."""
        async with asyncio.TaskGroup() as group:
            for part in series:
                for _ in range(part.transactions):
                    await asyncio.sleep(self._chance.uniform(0, part.pause))
                    group.create_task(self._transaction(await self._free.get(), part.held))

    async def _transaction(self, connection: Connection, held: float) -> None:
        chance = self._chance
        transaction = connection.transaction(
            isolation=chance.choice(["read_committed", "repeatable_read"])
        )
        delay = timedelta(seconds=chance.uniform(0, 0.6) if chance.random() < 0.2 else 0)
        rows = chance.choice([1, 1, 1, 2, 7])
        nap = chance.choice([0, 0.002, 0.02, 0.1])
        await transaction.start()
        if chance.random() < 0.3:  # an old snapshot, if it is repeatable read
            await connection.fetchval("SELECT count(*) FROM hybrid_runner.jobs")
            await asyncio.sleep(chance.uniform(0, 0.1))
        jobs = await connection.fetch(_INSERT, chance.choice([4, 5, 5, 6]), nap, delay, rows)
        if chance.random() < held:
            await asyncio.sleep(chance.uniform(0, 0.8))
        if chance.random() < 0.1:
            await transaction.rollback()
        else:
            now = await connection.fetchval("SELECT clock_timestamp()")
            await transaction.commit()
            self.startable |= {job["id"]: max(now, job["run_at"]) for job in jobs}
        self._free.put_nowait(connection)


@asynccontextmanager
async def producing(dsn: str, chance: random.Random) -> AsyncIterator[Producers]:
    """Producers, each with a connection of its own."""
    async with AsyncExitStack() as stack:
        connections = []
        for _ in range(PRODUCERS):
            connections.append(await connect(dsn))
            stack.push_async_callback(connections[-1].close)
        yield Producers(connections, chance)
