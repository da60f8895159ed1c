"""A wait goes on through what Postgres and the network do, until its own time is over."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from hybrid_runner import DatabaseError, JobStatus, RunnerError, SchemaMissing, WaitTimeout
from hybrid_runner.storage.connections.connection import Connection
from tests.support.proxy import Proxy
from tests.support.working import runner, working


class Seen:
    """Set once a wait has looked."""

    def __init__(self) -> None:
        self.event = asyncio.Event()

    def __call__(self, _: JobStatus) -> None:
        self.event.set()


@contextmanager
def noticed_outage() -> Iterator[asyncio.Event]:
    """Set once a wait has said that Postgres is away."""
    event = asyncio.Event()

    class Hears(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            if "still waiting for" in record.getMessage():
                event.set()

    log, handler = logging.getLogger("hybrid_runner"), Hears()
    log.addHandler(handler)
    yield event
    log.removeHandler(handler)


@pytest.mark.parametrize("timeout", [None, 20])
async def test_a_wait_outlasts_an_outage_of_postgres(timeout: float | None, dsn: str) -> None:
    worker_app = runner(dsn)
    finish = asyncio.Event()

    @worker_app.job("slow")
    async def slow(payload: int) -> int:
        await finish.wait()
        return payload * 2

    async with Proxy(dsn) as proxy, working(worker_app), runner(proxy.dsn) as app:
        seen = Seen()
        waiting = asyncio.create_task((await app.enqueue("slow", 4)).wait(timeout, on_status=seen))
        await seen.event.wait()
        with noticed_outage() as noticed:
            await proxy.cut()
            await noticed.wait()
        await proxy.mend()
        finish.set()
        assert await asyncio.wait_for(waiting, 20) == 8


async def test_a_wait_may_begin_while_postgres_is_away(dsn: str, database: Connection) -> None:
    async with runner(dsn) as other:
        job = (await other.enqueue("later", delay="1h")).id
    async with Proxy(dsn) as proxy:
        await proxy.cut()
        app = runner(proxy.dsn)
        with noticed_outage() as noticed:
            waiting = asyncio.create_task(app.handle(job).wait(20))
            await noticed.wait()
        await database.execute("SELECT hybrid_runner.cancel($1, 'enough')", job)
        await proxy.mend()
        with pytest.raises(RunnerError, match="was cancelled: enough"):
            await waiting
        await app.close()


async def test_a_wait_whose_time_is_over_in_an_outage_says_so(dsn: str) -> None:
    async with Proxy(dsn) as proxy, runner(proxy.dsn) as app:
        seen = Seen()
        waiting = asyncio.create_task(
            (await app.enqueue("later", delay="1h")).wait(1, on_status=seen)
        )
        await seen.event.wait()
        await proxy.cut()
        with pytest.raises(
            WaitTimeout, match=r"was not seen to end within 1 s: Postgres (does not answer|cannot)"
        ):
            await waiting


async def test_what_is_no_outage_ends_the_wait(dsn: str, database: Connection) -> None:
    async with runner(dsn) as app:
        seen = Seen()
        waiting = asyncio.create_task(
            (await app.enqueue("later", delay="1h")).wait(20, on_status=seen)
        )
        await seen.event.wait()
        await database.execute("ALTER SCHEMA hybrid_runner RENAME TO elsewhere")
        with pytest.raises(SchemaMissing):
            await waiting


async def test_a_refused_right_ends_the_wait(dsn: str, database: Connection) -> None:
    await database.execute("CREATE ROLE hr_nothing_to_see")
    try:
        async with runner(dsn + ("&" if "?" in dsn else "?") + "role=hr_nothing_to_see") as app:
            with pytest.raises(DatabaseError, match=r"permission denied.*grant this role"):
                await app.handle(1).wait(20)
    finally:
        await database.execute("DROP ROLE hr_nothing_to_see")
