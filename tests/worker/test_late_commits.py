"""Jobs that become visible long after they were inserted: because their transaction took its time,
or because a synchronous standby did.

Nothing but rings and looks may find them: polls and heartbeats are minutes away.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from itertools import count
from typing import Any

import pytest

from hybrid_runner import Job, Worker
from hybrid_runner.storage.connections.connection import Connection, connect
from hybrid_runner.storage.migrations import migrate
from tests.support import inside
from tests.support.bells import FAR_POLLS, seen
from tests.support.replication import Pair, pair
from tests.support.waiting import at_least, until, until_blocked
from tests.support.working import runner, working

Open = Callable[[], Awaitable[Connection]]
SETTINGS: dict[str, Any] = FAR_POLLS | {
    "sweep_cost_factor": 20,
    "heartbeat": "5m",
    "lease": "20m",
    "slots": 50,
}
INSERT = (
    "INSERT INTO hybrid_runner.jobs (kind, payload) VALUES ('note', to_jsonb($1::int)) RETURNING id"
)
BULK = """
INSERT INTO hybrid_runner.jobs (kind, payload) SELECT 'bulk', '0' FROM generate_series(1, 2000)
"""
STAYS_AWAKE: dict[str, Any] = {
    "doorbell_rate": 0.3,
    "doorbell_rate_window": "300ms",
    "sweep_every": "1h",
}
ENOUGH = 12.0
"""Seconds: far more than it takes, and far less than sweeps were put off once."""


class Noted:
    """A worker's app whose jobs note their number."""

    def __init__(self, dsn: str, **settings: Any) -> None:
        self.app = runner(dsn, **(SETTINGS | settings))
        self.numbers = set[int]()
        self.bulk = 0

        @self.app.job("note")
        async def note(payload: int, job: Job) -> None:
            self.numbers.add(payload)

        @self.app.job("bulk")
        async def count_it(payload: int) -> None:
            self.bulk += 1

    async def has(self, number: int) -> None:
        """Return once that job ran."""
        await until(lambda: number in self.numbers, patience=ENOUGH, what=f"job {number}")


@asynccontextmanager
async def others(connection: Connection, every: float = 0.1) -> AsyncIterator[None]:
    """A few other jobs, each in a short transaction: each look for them moves the frontier."""

    async def insert() -> None:
        for number in count(1000):
            await connection.fetchval(INSERT, number)
            await asyncio.sleep(every)

    task = asyncio.create_task(insert())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def commit_late(connection: Connection, noted: Noted, number: int) -> None:
    """Insert, and commit once jobs that were inserted a second later have run."""
    async with connection.transaction():
        await connection.fetchval(INSERT, number)
        began = time.monotonic()
        ran = len(noted.numbers)
        await until(lambda: time.monotonic() > began + 1 and len(noted.numbers) > ran + 3)


async def hold_up_looks(
    admin: Connection, producer: Connection, worker: Worker, mode: str, seconds: float
) -> None:
    """Hold a lock on the table of jobs until a look has waited for it for so long: the look for a
    job whose transaction was open when the lock was asked for.
    """
    async with admin.transaction():
        async with producer.transaction():
            await producer.fetchval(INSERT, 0)
            lock = asyncio.create_task(
                admin.execute(f"LOCK TABLE hybrid_runner.jobs IN {mode} MODE")
            )
            await until_blocked(producer, admin)
        await lock
        await until(lambda: seen(worker).busy, at_least(seconds))


def has_begun(mode: str) -> Callable[[str], bool]:
    """Asleep, or about to be; or awake."""
    return lambda seen: (seen == "awake") is (mode == "awake")


@pytest.mark.parametrize("mode", ["SHARE", "ACCESS EXCLUSIVE"])
async def test_a_look_that_waited_for_a_lock_hides_no_late_commit(
    mode: str, dsn: str, another: Open
) -> None:
    """The time in which it waited says nothing of what a sweep costs."""
    noted = Noted(dsn)
    async with working(noted.app) as worker:
        producer, admin = await another(), await another()
        async with others(await another()):
            await commit_late(producer, noted, 1)
            await noted.has(1)
            await hold_up_looks(admin, producer, worker, mode, 2)
            await noted.has(0)
            await commit_late(producer, noted, 3)
            await noted.has(3)
            assert seen(worker).polls == 0


async def test_a_job_in_a_rush_after_a_look_that_waited_is_found_as_any_other(
    dsn: str, another: Open
) -> None:
    """Most of them are behind the frontier as soon as the first ones have run."""
    noted = Noted(dsn)
    async with working(noted.app) as worker:
        producer, admin, bulk = await another(), await another(), await another()
        async with others(await another(), every=0.05):
            await hold_up_looks(admin, producer, worker, "SHARE", 1)
            async with bulk.transaction():
                await bulk.execute(BULK)
                ran = len(noted.numbers)
                await until(lambda: len(noted.numbers), at_least(ran + 10))
                await bulk.execute(BULK)
            await until(lambda: noted.bulk, at_least(4000), patience=ENOUGH)
            assert seen(worker).polls == 0


@pytest.mark.parametrize("mode", ["asleep", "awake"])
async def test_without_any_sweep_looks_find_what_is_committed_seconds_late(
    mode: str, dsn: str, another: Open
) -> None:
    """While few jobs come, they read again what was passed."""
    noted = Noted(dsn, **(STAYS_AWAKE if mode == "awake" else {}))
    async with working(noted.app) as worker:
        producer = await another()
        async with others(await another()):
            await until(lambda: len(noted.numbers), at_least(5))
            await until(lambda: seen(worker).mode, has_begun(mode))
            inside.block_sweeps(worker)
            sweeps = seen(worker).sweeps
            for number in (1, 2):
                await commit_late(producer, noted, number)
                await noted.has(number)
            assert seen(worker).sweeps == sweeps
            assert seen(worker).polls == 0


async def test_an_overdue_job_is_swept_for_whatever_the_last_sweep_took(
    dsn: str, database: Connection, another: Open
) -> None:
    """A heartbeat has just seen that it waits."""
    noted = Noted(dsn)
    async with working(noted.app) as worker, others(await another()):
        await until(lambda: len(noted.numbers), at_least(20))
        # The heartbeats of a start are over: none of its own finds the job.
        inside.block_sweeps(worker)
        await database.execute(
            "INSERT INTO hybrid_runner.jobs (kind, payload, run_at)"
            " VALUES ('note', '1', now() - interval '1 hour')"
        )
        ran = len(noted.numbers)
        await until(lambda: len(noted.numbers), at_least(ran + 3))
        assert 1 not in noted.numbers
        inside.tell_overdue(worker)
        await noted.has(1)


# --- a synchronous standby


@pytest.fixture
def slow_standby() -> Iterator[Pair]:
    """Commits that ask for it wait until the standby shows them, which takes half a second."""
    with pair(synchronous=True) as servers:
        asyncio.run(made(servers))
        servers.standby.ask("ALTER SYSTEM SET recovery_min_apply_delay = '500ms'")
        servers.standby.ask("SELECT pg_reload_conf()")
        yield servers


async def made(servers: Pair) -> None:
    connection = await connect(servers.primary.dsn)
    await migrate(connection)
    await connection.close()


async def insert_slowly(dsn: str, numbers: range, visible_late: list[float]) -> None:
    connection = await connect(dsn)
    await connection.execute("SET synchronous_commit = remote_apply")
    for number in numbers:
        began = time.monotonic()
        await connection.fetchval(INSERT, number)
        visible_late.append(time.monotonic() - began)
    await connection.close()


@pytest.mark.parametrize("mode", ["asleep", "awake"])
async def test_what_a_standby_acknowledges_late_needs_no_sweep(
    mode: str, slow_standby: Pair
) -> None:
    """Every insert is a late commit then: the frontier has passed it before it can be seen."""
    dsn = slow_standby.primary.dsn
    noted = Noted(dsn, **(STAYS_AWAKE if mode == "awake" else {}))
    async with working(noted.app) as worker, AsyncExitStack() as stack:
        quick = await connect(dsn)
        stack.push_async_callback(quick.close)
        await stack.enter_async_context(others(quick))
        await until(lambda: len(noted.numbers), at_least(5))
        await until(lambda: seen(worker).mode, has_begun(mode))
        inside.block_sweeps(worker)
        visible_late: list[float] = []
        producers = [range(10 * place, 10 * place + 3) for place in range(3)]
        await asyncio.gather(*(insert_slowly(dsn, numbers, visible_late) for numbers in producers))
        for number in (number for numbers in producers for number in numbers):
            await noted.has(number)
        assert min(visible_late) > 0.25, "later than any look reads again at a high rate"
        assert seen(worker).polls == 0
