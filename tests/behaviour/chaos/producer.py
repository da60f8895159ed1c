"""The process that inserts. What it sends, and what was acknowledged, is on file before anything
else happens.

`python -m tests.behaviour.chaos.producer FOLDER PRODUCER_DSN CLIENT_DSN FIRST JOBS SECONDS SEED`
"""

from __future__ import annotations

import asyncio
import itertools
import os
import random
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import asyncpg
import orjson

from hybrid_runner.embedded.account import die_with_parent
from hybrid_runner.storage.connections.connection import Connection, connect
from tests.behaviour.chaos.journal import PRODUCER, REFUSALS, SIGNALS, Journal
from tests.behaviour.chaos.orders import Order, key_of_signal, order
from tests.behaviour.chaos.postgres import AWAY

CONNECTIONS = 8
_SIZES = [1, 1, 1, 1, 2, 5, 20]
_INSERT = """
INSERT INTO hybrid_runner.jobs (kind, queue, priority, payload, key, run_at)
VALUES ($1, $2, $3, $4::text::jsonb, $5, clock_timestamp() + make_interval(secs => $6)) RETURNING id
"""
_ENQUEUE = """
SELECT id, outcome
FROM hybrid_runner.enqueue_job(
    $1, $4::text::jsonb,
    queue => $2, key => $5, priority => $3, delay => make_interval(secs => $6)
)
"""
_SIGNAL = "SELECT hybrid_runner.signal($1, to_jsonb($2::text), once => $3)"
_CANCEL = "SELECT hybrid_runner.cancel($1, 'a client did not want it')"


class Producer:
    """Inserts so many jobs in so many seconds; an outage is made up for afterwards."""

    def __init__(
        self,
        folder: Path,
        dsn: str,
        client_dsn: str,
        first: int,
        jobs: int,
        seconds: float,
        seed: int,
    ) -> None:
        self._journal = Journal(folder / PRODUCER)
        self._refusals = Journal(folder / REFUSALS)
        self._signals = Journal(folder / SIGNALS)
        self._dsn = dsn
        self._client_dsn = client_dsn
        self._first = first
        self._jobs = jobs
        self._seconds = seconds
        self._chance = random.Random(f"jobs of {seed} from {first} on")
        self._free: asyncio.Queue[Connection | None] = asyncio.Queue()
        for _ in range(CONNECTIONS):
            self._free.put_nowait(None)

    async def run(self) -> None:
        """Return when all transactions have ended, and all cancels were answered."""
        sent, began = 0, time.monotonic()
        async with asyncio.TaskGroup() as group:
            while sent < self._jobs:
                connection = await self._free.get()
                size = min(self._chance.choice(_SIZES), self._jobs - sent)
                orders = [order(self._first + n, self._chance) for n in range(sent, sent + size)]
                sent += size
                group.create_task(self._insert(connection, orders, group))
                await asyncio.sleep(began + self._seconds * sent / self._jobs - time.monotonic())

    async def _insert(
        self, connection: Connection | None, orders: Sequence[Order], group: asyncio.TaskGroup
    ) -> None:
        """One transaction; one that fails is not repeated: its jobs are void, or doubtful."""
        chance = random.Random(
            f"{orders[0].n}"
        )  # its own: the transactions beside it take turns as they please
        began = time.time()
        try:
            if connection is None or connection.is_closed():
                connection = await _until_there(self._dsn)
            stored = await self._transaction(connection, orders, chance)
            for one in orders:
                if one.kind == "gather" and one.n in stored:
                    for place in range(one.payload["times"]):
                        group.create_task(self._signal(one.n, place))
                if one.cancel_after is not None and one.n in stored:
                    group.create_task(self._cancel(one, stored[one.n]))
        except AWAY as error:
            if isinstance(error, asyncpg.ProgramLimitExceededError):
                self._refusals.write(transaction=orders[0].n, began=began, why=str(error))
            if connection is not None:
                connection.terminate()
        self._free.put_nowait(connection)

    async def _transaction(
        self, connection: Connection, orders: Sequence[Order], chance: random.Random
    ) -> dict[int, int]:
        number = orders[0].n
        jobs = [
            {"n": o.n, "kind": o.kind, "key": o.key, "delay": o.delay, "times": o.payload["times"]}
            for o in orders
        ]
        self._journal.write(what="sent", transaction=number, jobs=jobs, at=time.time())
        try:
            transaction = connection.transaction(
                isolation=chance.choice(["read_committed", "repeatable_read"])
            )
            await transaction.start()
            if chance.random() < 0.2:  # an old snapshot, if it is repeatable read
                await connection.fetchval("SELECT 1")
                await asyncio.sleep(chance.uniform(0, 0.3))
            stored = [await _store(connection, one, chance) for one in orders]
            if chance.random() < 0.1:
                await asyncio.sleep(chance.uniform(0, 1.5))
        except asyncpg.IntegrityConstraintViolationError:  # its key is taken
            self._journal.write(what="void", transaction=number)
            await transaction.rollback()
            return {}
        except AWAY:
            self._journal.write(what="void", transaction=number)  # the commit was never sent
            raise
        if chance.random() < 0.05:
            self._journal.write(what="void", transaction=number)
            await transaction.rollback()
            return {}
        await transaction.commit()
        self._journal.write(what="kept", transaction=number, stored=stored, at=time.time())
        return {n: job_id for n, job_id, outcome in stored if outcome == "inserted"}

    async def _cancel(self, one: Order, job_id: int) -> None:
        """Ask once; the answer may never come."""
        await asyncio.sleep(one.cancel_after or 0)
        try:
            client = await _until_there(self._client_dsn)
            self._journal.write(what="cancelling", n=one.n)
            answer = await client.fetchval(_CANCEL, job_id)
            self._journal.write(what="cancelled", n=one.n, answer=answer)
            await client.close(timeout=5)
        except AWAY:
            pass

    async def _signal(self, n: int, place: int) -> None:
        """Until it was acknowledged, each time with another mark; one that has a key of its own
        perhaps twice at a time.
        """
        chance = random.Random(f"signal {place} of {n}")
        await asyncio.sleep(chance.uniform(0, 4))
        key, has_own_key = key_of_signal(n, place), n % 2 == 1
        times = 2 if has_own_key and chance.random() < 0.4 else 1
        await asyncio.gather(
            *(self._signal_until_taken(n, f"{place}.{i}", key, has_own_key) for i in range(times))
        )

    async def _signal_until_taken(self, n: int, mark: str, key: str, once: bool) -> None:
        for time_around in itertools.count():
            name = f"{mark}.{time_around}"
            self._signals.write(n=n, mark=name)
            try:
                client = await _until_there(self._client_dsn)
                await client.fetchval(_SIGNAL, key, name, once)
            except AWAY:
                await asyncio.sleep(0.2)
            else:
                client.terminate()
                return


async def _until_there(dsn: str) -> Connection:
    while True:
        try:
            return await connect(dsn)
        except AWAY:
            await asyncio.sleep(0.2)


async def _store(connection: Connection, one: Order, chance: random.Random) -> tuple[int, int, str]:
    """Its number, the id of the job or of the one that holds its key, and what became of it."""
    arguments = (
        one.kind,
        one.queue,
        one.priority,
        orjson.dumps(one.payload).decode(),
        one.key,
        one.delay,
    )
    if one.key is not None and chance.random() < 0.7:
        row = await connection.fetchrow(_ENQUEUE, *arguments)
        assert row is not None
        return one.n, row["id"], row["outcome"]
    return one.n, await connection.fetchval(_INSERT, *arguments), "inserted"


if __name__ == "__main__":
    die_with_parent(os.getppid(), signal.SIGKILL)
    folder, dsn, client_dsn, first, jobs, seconds, seed = sys.argv[1:]
    asyncio.run(
        Producer(
            Path(folder), dsn, client_dsn, int(first), int(jobs), float(seconds), int(seed)
        ).run()
    )
