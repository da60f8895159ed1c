"""Postgres goes away, and comes back: sessions ended, servers restarted and killed, logins and writes refused, rows locked."""

from __future__ import annotations

import asyncio
import signal
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import timedelta
from typing import Any

import pytest

from hybrid_runner import Job, Runner, Worker
from hybrid_runner.policy.pace import Pace
from hybrid_runner.storage.connections import Connection, connect
from hybrid_runner.worker import loops
from tests.support.bells import FAR_POLLS, seen, until
from tests.support.faults import OwnServer, end_sessions, own_server
from tests.support.proxy import Proxy
from tests.support.working import runner, working

QUICK_BEATS: dict[str, Any] = {"heartbeat": "200ms"}
INSERT = "INSERT INTO hybrid_runner.jobs (kind) SELECT $1 FROM generate_series(1, $2::int) RETURNING id"
LEFT = "SELECT count(*) FROM hybrid_runner.jobs"
COMPLETED = "SELECT count(*) FROM hybrid_runner.archive WHERE state = 'completed'"


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """Between two tries."""
    monkeypatch.setattr(loops, "OUTAGE", Pace(timedelta(milliseconds=20), timedelta(milliseconds=200), 2))


class App:
    """Counts how often each job began. `brief` is quick, `hold` runs until it is let go."""

    def __init__(self, dsn: str, **settings: Any) -> None:
        self.runner: Runner = runner(dsn, **(FAR_POLLS | settings))
        self.began: Counter[int] = Counter()
        self.holding = 0
        self.let_go = asyncio.Event()
        self.cancelled = False

        @self.runner.job("brief")
        async def brief(payload: dict[str, int], job: Job) -> None:
            self.began[job.id] += 1
            if len(self.began) % 10 == 0:
                await job.progress(0.5, "half way")

        @self.runner.job("hold")
        async def hold(payload: dict[str, int], job: Job) -> str:
            self.began[job.id] += 1
            self.holding += 1
            try:
                await self.let_go.wait()
            except asyncio.CancelledError:
                self.cancelled = True
                raise
            return "let go"

    @property
    def ran_once(self) -> bool:
        return set(self.began.values()) == {1}


async def ended(worker: Worker, count: int) -> None:
    await asyncio.wait_for(worker.settled(count), 30)


async def hears_again(worker: Worker, database: Connection, count: int) -> None:
    """The event path works: a job is found by its ring, not by a sweep."""
    await asyncio.wait_for(worker.hearing(), 20)
    await asyncio.wait_for(worker.idle(), 20)
    await until(lambda: seen(worker).mode == "asleep")
    rings = seen(worker).found.get("ring", 0)
    await database.fetch(INSERT, "brief", 1)
    await ended(worker, count)
    assert seen(worker).found.get("ring", 0) == rings + 1


@pytest.mark.parametrize("purpose", ["claims", "settles", "courtesies", "listener", "heartbeat"])
async def test_a_session_that_is_ended_does_no_harm(purpose: str, dsn: str, database: Connection) -> None:
    """A9 A13: five times each, in the middle of work: every job runs once, and the worker goes on by itself."""
    app, name = App(dsn, **QUICK_BEATS), f"hybrid-runner {purpose}"
    async with working(app.runner) as worker:
        for number in range(5):
            await database.fetch(INSERT, "brief", 200)
            await ended(worker, 200 * number + 20)
            while not await end_sessions(database, name):
                await asyncio.sleep(0.01)  # it has not come back from the last time
            await ended(worker, 200 * number + 200)
        assert app.ran_once
        assert len(app.began) == 1000
        assert await database.fetchval(LEFT) == 0
        await hears_again(worker, database, 1001)
        status = worker.status()
        assert (status.ended_loops, status.settled) == ((), {"completed": 1001})
    assert await database.fetchval("SELECT max(attempt) FROM hybrid_runner.archive") == 1


@pytest.mark.parametrize(
    ("number", "flushed"),
    [(signal.SIGINT, False), (signal.SIGQUIT, True), (signal.SIGKILL, True), (signal.SIGKILL, False)],
    ids=["fast", "immediate", "killed", "killed-claims-unflushed"],
)
async def test_a_server_that_ends_in_the_middle_of_work_is_waited_for(number: signal.Signals, flushed: bool) -> None:
    """A9: what runs goes on, what it came to is kept, everything ends, and rings are heard again."""
    async with own_server() as server:
        app = App(server.dsn, flush_claims=flushed, **QUICK_BEATS)
        async with working(app.runner) as worker:
            database = await connect(server.dsn)
            await database.fetch(INSERT, "hold", 5)
            await until(lambda: app.holding == 5)
            await database.fetch(INSERT, "brief", 3000)
            await ended(worker, 300)
            await server.stop(number)
            database.terminate()
            app.let_go.set()
            await until(lambda: worker.status().running == 0)
            assert worker.status().pending_settlements >= 5
            await server.start()
            await ended(worker, 3005)
            assert not app.cancelled
            database = await connect(server.dsn)
            assert await database.fetchval(LEFT) == 0
            assert await database.fetchval(COMPLETED) == 3005
            # A claim that was not flushed may be forgotten in a crash: its job runs again, and that is all.
            assert app.ran_once or not flushed
            await hears_again(worker, database, 3006)
            assert worker.status().ended_loops == ()
            await database.close()


LEASE = timedelta(seconds=1)
SILENT = "SELECT bool_and(heartbeat_at + lease < clock_timestamp()) FROM hybrid_runner.workers"


@asynccontextmanager
async def two_workers(dsn: str) -> AsyncIterator[list[tuple[App, Worker]]]:
    """With a short lease, both holding jobs."""
    async with AsyncExitStack() as stack:
        both = []
        for _ in range(2):
            app = App(dsn, lease=LEASE, slots=5, **QUICK_BEATS)
            both.append((app, await stack.enter_async_context(working(app.runner))))
        yield both


async def test_after_an_outage_longer_than_the_lease_nobody_is_declared_dead(dsn: str, database: Connection) -> None:
    """D5: the network between the workers and the server."""
    async with Proxy(dsn) as proxy, two_workers(proxy.dsn) as both:
        await database.fetch(INSERT, "hold", 10)
        await until(lambda: sum(app.holding for app, _ in both) == 10)
        await proxy.cut()
        while not await database.fetchval(SILENT):
            await asyncio.sleep(0.05)
        await proxy.mend()
        await nobody_was_declared_dead(both, database)


async def test_after_a_server_was_away_for_longer_than_the_lease_nobody_is_declared_dead() -> None:
    """D5: the server itself."""
    async with own_server() as server, two_workers(server.dsn) as both:
        database = await connect(server.dsn)
        await database.fetch(INSERT, "hold", 10)
        await until(lambda: sum(app.holding for app, _ in both) == 10)
        await server.stop(signal.SIGINT)
        database.terminate()
        await asyncio.sleep(1.5 * LEASE.total_seconds())  # the time is what it is about
        await server.start()
        database = await connect(server.dsn)
        await nobody_was_declared_dead(both, database)
        await database.close()


async def nobody_was_declared_dead(both: list[tuple[App, Worker]], database: Connection) -> None:
    while await database.fetchval("SELECT count(*) FROM hybrid_runner.workers WHERE heartbeat_at + lease > clock_timestamp()") < 2:
        await asyncio.sleep(0.01)
    for app, _ in both:
        app.let_go.set()
    while await database.fetchval(LEFT):
        await asyncio.sleep(0.01)
    assert await database.fetchval("SELECT count(*) FROM hybrid_runner.workers WHERE dead_at IS NOT NULL") == 0
    assert [worker.status().rescued for _, worker in both] == [0, 0]
    assert sum((app.began for app, _ in both), Counter[int]()).most_common(1)[0][1] == 1
    assert await database.fetchval("SELECT max(attempt) FROM hybrid_runner.archive WHERE state = 'completed'") == 1
    assert await database.fetchval(COMPLETED) == 10
