"""Disorderly producers, and the app of the workers that face them. All chance comes from one seed."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta

from hybrid_runner import Runner
from hybrid_runner.storage.connections import Connection, connect

PRODUCERS = 8

_INSERT = """
INSERT INTO hybrid_runner.jobs (kind, priority, payload, run_at)
SELECT 'nap', $1, jsonb_build_object('seconds', $2::float8), clock_timestamp() + $3::interval FROM generate_series(1, $4::int)
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
class Style:
    """How producers behave for a while."""

    name: str
    transactions: int
    pause: float
    """Seconds between two transactions, at most."""
    held: float
    """Share of the transactions that stay open for a while after their insert."""


BURST = Style("burst", 120, 0.004, 0.1)
AROUND_THE_THRESHOLD = Style("around the threshold", 25, 0.06, 0.3)
TRICKLE = Style("trickle", 6, 0.25, 0.3)
LATE = Style("late", 12, 0.01, 0.8)
"""Few, and almost all of them commit after the workers have lost interest."""
STYLES = (BURST, AROUND_THE_THRESHOLD, TRICKLE, LATE)


class Producers:
    """Insert in transactions of all kinds; remember from when on each job could have been started, by the server's clock."""

    def __init__(self, connections: list[Connection], chance: random.Random) -> None:
        self.startable: dict[int, datetime] = {}
        self._free: asyncio.Queue[Connection] = asyncio.Queue()
        for connection in connections:
            self._free.put_nowait(connection)
        self._chance = chance

    async def insert(self, style: Style) -> set[int]:
        """A series of transactions; the ids of the jobs that were committed."""
        before = set(self.startable)
        async with asyncio.TaskGroup() as group:
            for _ in range(style.transactions):
                connection = await self._free.get()
                group.create_task(self._transaction(connection, style))
                await asyncio.sleep(self._chance.uniform(0, style.pause))
        return set(self.startable) - before

    async def _transaction(self, connection: Connection, style: Style) -> None:
        chance = self._chance
        transaction = connection.transaction(isolation=chance.choice(["read_committed", "repeatable_read"]))
        delay = timedelta(seconds=chance.uniform(0, 0.6) if chance.random() < 0.2 else 0)
        rows = chance.choice([1, 1, 1, 2, 7])
        nap = chance.choice([0, 0.002, 0.02, 0.1])
        await transaction.start()
        if chance.random() < 0.3:  # an old snapshot, if it is repeatable read
            await connection.fetchval("SELECT count(*) FROM hybrid_runner.jobs")
            await asyncio.sleep(chance.uniform(0, 0.1))
        jobs = await connection.fetch(_INSERT, chance.choice([4, 5, 5, 6]), nap, delay, rows)
        if chance.random() < style.held:
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
