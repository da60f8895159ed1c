"""Postgres goes away and comes back: sessions that are ended, servers that stop, restart and are
killed.
"""

from __future__ import annotations

import asyncio
import signal
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import timedelta

import pytest

from hybrid_runner import Worker
from hybrid_runner.storage.connections.connection import Connection, connect
from tests.support.busy import COMPLETED, INSERT, LEFT, QUICK_BEATS, App, ended, hears_again
from tests.support.faults import end_sessions, own_server
from tests.support.proxy import Proxy
from tests.support.waiting import until, until_fetched
from tests.support.working import working

pytestmark = pytest.mark.usefixtures("short_pauses")


@pytest.mark.parametrize("purpose", ["claims", "settles", "courtesies", "listener", "heartbeat"])
async def test_a_session_that_is_ended_does_no_harm(
    purpose: str, dsn: str, database: Connection
) -> None:
    """A9 A13: five times each, in the middle of work: every job runs once, and the worker goes on
    by itself.
    """
    app, name = App(dsn, **QUICK_BEATS), f"hybrid-runner {purpose}"
    async with working(app.runner) as worker:
        for number in range(5):
            await database.fetch(INSERT, "brief", 200)
            await ended(worker, 200 * number + 20)
            await until(
                lambda: end_sessions(database, name)
            )  # it has to come back from the last time
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
    [
        (signal.SIGINT, False),
        (signal.SIGQUIT, True),
        (signal.SIGKILL, True),
        (signal.SIGKILL, False),
    ],
    ids=["fast", "immediate", "killed", "killed-claims-unflushed"],
)
async def test_a_server_that_ends_in_the_middle_of_work_is_waited_for(
    number: signal.Signals, flushed: bool
) -> None:
    """A9: what runs goes on, what it came to is kept, everything ends, and rings are heard
    again.
    """
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
            # A claim that was not flushed may be forgotten in a crash: its job runs again, and that
            # is all.
            assert app.ran_once or not flushed
            await hears_again(worker, database, 3006)
            assert worker.status().ended_loops == ()
            await database.close()


LEASE = timedelta(seconds=3)
SILENT = "SELECT bool_and(heartbeat_at + lease < clock_timestamp()) FROM hybrid_runner.workers"


@asynccontextmanager
async def two_workers(dsn: str) -> AsyncIterator[list[tuple[App, Worker]]]:
    """Two workers with short leases, both holding jobs."""
    async with AsyncExitStack() as stack:
        both = []
        for _ in range(2):
            app = App(dsn, lease=LEASE, slots=5, **QUICK_BEATS)
            both.append((app, await stack.enter_async_context(working(app.runner))))
        yield both


async def test_after_an_outage_longer_than_the_lease_nobody_is_declared_dead(
    dsn: str, database: Connection
) -> None:
    """D5: the network between the workers and the server."""
    async with Proxy(dsn) as proxy, two_workers(proxy.dsn) as both:
        await database.fetch(INSERT, "hold", 10)
        await until(lambda: sum(app.holding for app, _ in both) == 10)
        await proxy.cut()
        await until(lambda: database.fetchval(SILENT))
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
    await until_fetched(
        database,
        "SELECT count(*) FROM hybrid_runner.workers WHERE heartbeat_at + lease > clock_timestamp()",
        2,
    )
    for app, _ in both:
        app.let_go.set()
    await until_fetched(database, LEFT, 0)
    assert (
        await database.fetchval(
            "SELECT count(*) FROM hybrid_runner.workers WHERE dead_at IS NOT NULL"
        )
        == 0
    )
    assert [worker.status().rescued for _, worker in both] == [0, 0]
    assert sum((app.began for app, _ in both), Counter[int]()).most_common(1)[0][1] == 1
    assert (
        await database.fetchval(
            "SELECT max(attempt) FROM hybrid_runner.archive WHERE state = 'completed'"
        )
        == 1
    )
    assert await database.fetchval(COMPLETED) == 10
