"""What the application's clients do, by chance from a seed: plain SQL on their own table, in
transactions that stay open for a while and may be rolled back.
"""

from __future__ import annotations

import asyncio
import random

import asyncpg

from hybrid_runner.errors import RunnerError
from hybrid_runner.storage.connections.connection import Connection, connect
from tests.behaviour.rows.handlers import WAYS
from tests.behaviour.rows.records import Records
from tests.behaviour.rows.table import APPLICATION

AWAY = (
    asyncpg.PostgresError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,
    OSError,
    TimeoutError,
    RunnerError,
)
"""What a client may get to see while its server is away."""
_INSERT = """
INSERT INTO shop.orders (status, wants, how, seconds, times)
SELECT n.status, CASE n.status WHEN 'pending' THEN 1 ELSE 0 END, n.how, n.seconds, n.times
FROM unnest($1::text[], $2::text[], $3::float8[], $4::int[]) AS n (status, how, seconds, times)
RETURNING id
"""
_WANT = "UPDATE shop.orders SET status = 'pending', wants = wants + 1 WHERE id = $1"
_DROP = """
UPDATE shop.orders SET status = 'dropped' WHERE id = $1 AND status IN ('pending', 'processing')
"""
_WITHDRAW = "UPDATE shop.orders SET status = 'draft' WHERE id = $1 AND status = 'pending'"
_EDIT = "UPDATE shop.orders SET note = coalesce(note, 0) + 1 WHERE id = $1"
_HOLD = "SELECT FROM shop.orders WHERE id = $1 FOR UPDATE"
_DELETE = "DELETE FROM shop.orders WHERE id = $1"
_RUNNING = "SELECT id FROM shop.orders WHERE status = 'processing' ORDER BY random() LIMIT 2"
_SOME_JOB = "SELECT id FROM hybrid_runner.{} WHERE source IS NOT NULL ORDER BY random() LIMIT 1"
_WAYS = {_WANT: 10, _EDIT: 5, _HOLD: 4, _DROP: 3, _WITHDRAW: 2, _DELETE: 1}
_FEW_ROWS = 60
"""Most of what is done is done to the youngest rows, so that it meets their jobs."""


class Client:
    """One connection, and a chance of its own. It locks rows in their order, as an application does
    that has no deadlocks.
    """

    def __init__(self, dsn: str, records: Records, rows: list[int], chance: random.Random) -> None:
        self._dsn = dsn
        self._records = records
        self._rows = rows
        self._chance = chance
        self._connection: Connection | None = None

    async def work_until(self, end: float) -> None:
        """One transaction after the other, until the event loop's clock says so."""
        loop = asyncio.get_running_loop()
        while loop.time() < end:
            await asyncio.sleep(self._chance.uniform(0, 0.15))
            try:
                await self._transaction(await self._connected())
            except asyncpg.DeadlockDetectedError as error:
                self._records.deadlocks.append(f"{error}: {error.detail}")
            except AWAY:
                await asyncio.sleep(0.2)
        if self._connection is not None:
            self._connection.terminate()

    async def _connected(self) -> Connection:
        if self._connection is None or self._connection.is_closed():
            self._connection = await connect(self._dsn, {"application_name": APPLICATION})
            await self._connection.execute("SET statement_timeout = '20s'")
        return self._connection

    async def _transaction(self, connection: Connection) -> None:
        transaction = connection.transaction()
        await transaction.start()
        try:
            new = await self._insert(connection) if self._chance.random() < 0.35 else []
            for row in sorted(await self._some_rows(connection)):
                [statement] = self._chance.choices(list(_WAYS), list(_WAYS.values()))
                await self._statement(connection, statement, row)
            await self._linger()
        except AWAY:
            if not connection.is_closed():
                await transaction.rollback()
            raise
        if self._chance.random() < 0.1:
            await transaction.rollback()
            return
        # Before the answer to the commit, which may be lost.
        self._rows += new
        await transaction.commit()

    async def _statement(self, connection: Connection, statement: str, row: int) -> None:
        """Once in a while undone by a savepoint."""
        self._records.operations += 1
        if self._chance.random() > 0.1:
            await connection.execute(statement, row)
            return
        inner = connection.transaction()
        await inner.start()
        await connection.execute(statement, row)
        await inner.rollback()

    async def _insert(self, connection: Connection) -> list[int]:
        self._records.operations += 1
        size = self._chance.choice([1, 1, 1, 3, 20])
        ways = self._chance.choices(list(WAYS), list(WAYS.values()), k=size)
        found = await connection.fetch(
            _INSERT,
            self._chance.choices(["pending", "draft"], [4, 1], k=size),
            ways,
            [self._seconds(way) for way in ways],
            self._chance.choices([1, 1, 2, 3], k=size),
        )
        return [row["id"] for row in found]

    def _seconds(self, way: str) -> float:
        longest = 5.0 if way == "naps long" else 0.6
        return round(longest * self._chance.random() ** 2, 3)

    async def _some_rows(self, connection: Connection) -> set[int]:
        among = self._rows[-_FEW_ROWS:] if self._chance.random() < 0.8 else self._rows
        rows = set(self._chance.sample(among, min(len(among), self._chance.randint(1, 4))))
        if self._chance.random() < 0.4:
            rows.update(row["id"] for row in await connection.fetch(_RUNNING))
        return rows

    async def _linger(self) -> None:
        """Most transactions are short; some are forms that somebody has left open."""
        match self._chance.random():
            case share if share < 0.02:
                await asyncio.sleep(self._chance.uniform(2, 5))
            case share if share < 0.3:
                await asyncio.sleep(self._chance.uniform(0, 1))


async def work_on_rows(
    dsn: str,
    records: Records,
    seconds: float,
    seed: int,
    clients: int = 4,
) -> None:
    """So many clients for so long; then none of their locks is left."""
    rows: list[int] = []
    end = asyncio.get_running_loop().time() + seconds
    async with asyncio.TaskGroup() as group:
        for number in range(clients):
            chance = random.Random(f"rows of {seed} {number}")
            group.create_task(Client(dsn, records, rows, chance).work_until(end))


async def cancel_and_retry_until(
    connection: Connection, records: Records, chance: random.Random, end: float
) -> None:
    """Somebody with more rights cancels jobs of rows, and retries ended ones."""
    loop = asyncio.get_running_loop()
    while loop.time() < end:
        await asyncio.sleep(chance.uniform(0, 0.4))
        way, jobs = chance.choice([("cancel", "jobs"), ("retry", "archive")])
        job_id = await connection.fetchval(_SOME_JOB.format(jobs))
        if job_id is not None:
            if way == "retry":
                records.retried.add(job_id)
            await connection.fetchval(f"SELECT hybrid_runner.{way}($1)", job_id)
            records.operations += 1
