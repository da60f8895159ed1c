"""A login without rights fills the server's queue of notifications: whoever has notified fails at
its commit then.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from datetime import timedelta

import asyncpg
import pytest

from hybrid_runner.storage import worker_calls
from hybrid_runner.storage.connections.connection import connect
from tests.support import inside, logins
from tests.support.bells import INSERT, Handlers, seen
from tests.support.faults import DURABLE, own_server
from tests.support.logins import Login, Logins
from tests.support.server import Server
from tests.support.waiting import until, until_fetched
from tests.support.working import working

SMALL = DURABLE | {"max_notify_queue_pages": "64"}
USED = "SELECT pg_notification_queue_usage()"
STATE = "SELECT state::text FROM hybrid_runner.all_jobs WHERE id = $1"
OFTEN = {"poll_base": "100ms", "poll_cap": "100ms", "heartbeat": "200ms"}


@pytest.fixture
async def small() -> AsyncIterator[str]:
    """The DSN of a server whose queue is full soon."""
    async with own_server(SMALL) as server:
        with logins.made(Server(server.dsn, lambda: None)):
            yield server.dsn


@asynccontextmanager
async def clogged(
    dsn: str, enough: Callable[[float], bool] = lambda _: False
) -> AsyncIterator[None]:
    """Somebody listens in a transaction that stays open, and somebody else sends until the queue
    is full, or that is `enough`.
    """
    nobody = Logins(dsn)(Login.NOBODY)
    sleeper, sender = await connect(nobody), await connect(nobody)
    try:
        await sleeper.execute("LISTEN anything")
        async with sleeper.transaction():
            await sleeper.execute("SELECT")
            with suppress(asyncpg.ProgramLimitExceededError):
                while not enough(await sender.fetchval(USED)):
                    await sender.execute("SELECT pg_notify('anything', repeat('x', 7000))")
            yield
    finally:
        await sleeper.close()
        await sender.close()


async def test_a_full_queue_stops_no_statement(small: str) -> None:
    database = await connect(small)
    async with clogged(small):
        with pytest.raises(asyncpg.ProgramLimitExceededError):
            await database.execute("SELECT pg_notify('anything', '')")
        job = await database.fetchval(INSERT, "note")
        later = "SELECT hybrid_runner.enqueue('note', delay => '10 seconds', key => 'k')"
        await database.fetchval(later)
        await database.fetchval(later.replace("'k'", "'k', on_conflict => 'replace'"))
        assert await database.fetchval("SELECT hybrid_runner.cancel($1)", job) == "cancelled"
        assert await database.fetchval("SELECT hybrid_runner.retry($1)", job) == "queued"
        await database.execute("SELECT hybrid_runner.pause('default')")
        assert await database.fetchval("SELECT hybrid_runner.resume('default')")
        await database.execute("SELECT hybrid_runner.leave_bell('default', 'somebody', true)")
        await database.execute(
            "SELECT setval('hybrid_runner.stream_readers_until', "
            "(extract(epoch FROM clock_timestamp()) * 1000)::bigint + 60000)"
        )
        await database.execute("SELECT hybrid_runner.publish('default', 'note', $1)", job)
        assert await database.fetchval("SELECT hybrid_runner.notify_if_room('c', '')") is False
    await database.close()


async def test_a_full_queue_stops_no_worker(small: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not its heartbeats either. Jobs are found by polls, and rings are heard again afterwards."""
    inside.make_silence_short(monkeypatch)
    jobs = Handlers(small, **OFTEN)
    database = await connect(small)
    async with working(jobs.app) as worker:
        async with clogged(small):
            inside.listener(worker).silenced()
            await until(lambda: seen(worker).mode == "deaf")
            beaten = inside.beaten_at(worker)
            await until(lambda: inside.beaten_at(worker) > beaten)
            job = await database.fetchval(INSERT, "note")
            assert await jobs.next() == job
            await until_fetched(database, STATE, "completed", job)
            running = await database.fetchval(INSERT, "hold")
            await jobs.held.wait()
            cancel = "SELECT hybrid_runner.cancel($1)"
            assert await database.fetchval(cancel, running) == "requested"
            await until_fetched(database, STATE, "cancelled", running)
            assert worker.status().ended_loops == ()
        await until(lambda: inside.listener(worker).hearing)
    await database.close()


async def test_a_worker_that_starts_beside_a_full_queue_polls(small: str) -> None:
    jobs = Handlers(small, **OFTEN)
    database = await connect(small)
    async with clogged(small), working(jobs.app, deaf=True) as worker:
        assert await database.fetchval(INSERT, "note") == await jobs.next()
        assert seen(worker).mode == "deaf"
        await until(lambda: "half full" in (worker.status().vitals.disturbance or ""))
    await database.close()


async def test_a_queue_that_fills_is_seen_coming(small: str) -> None:
    database = await connect(small)
    async with clogged(small, lambda used: used > 0.2):
        found = dict(await worker_calls.find_growth(database, timedelta(minutes=10)))
        assert "of notifications of this server is 2" in found["notifications"]
        assert "pg_terminate_backend(" in found["notifications"]
        assert 0.2 < await worker_calls.notify_queue_used(database) < 0.3
    await database.close()
