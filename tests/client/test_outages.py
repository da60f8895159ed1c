"""A wait goes on through what Postgres and the network do, until its own time is over."""

from __future__ import annotations

import asyncio
import logging
import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest

from hybrid_runner import (
    ConfigurationError,
    DatabaseError,
    JobCancelled,
    JobStatus,
    RunnerError,
    SchemaMissing,
    State,
    WaitTimeout,
)
from hybrid_runner.client.waiting import Watcher
from hybrid_runner.storage.connections.connection import Connection, connect
from tests.support.faults import own_server
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


@pytest.mark.parametrize("timeout", [None, 120])
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
        assert await asyncio.wait_for(waiting, 120) == 8


async def test_a_wait_may_begin_while_postgres_is_away(dsn: str, database: Connection) -> None:
    async with runner(dsn) as other:
        job = (await other.enqueue("later", delay="1h")).id
    async with Proxy(dsn) as proxy:
        await proxy.cut()
        app = runner(proxy.dsn)
        with noticed_outage() as noticed:
            waiting = asyncio.create_task(app.handle(job).wait(120))
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
            (await app.enqueue("later", delay="1h")).wait(5, on_status=seen)
        )
        await seen.event.wait()
        await proxy.cut()
        with pytest.raises(
            WaitTimeout, match=r"was not seen to end within 5 s: Postgres (does not answer|cannot)"
        ):
            await waiting


async def test_what_is_no_outage_ends_the_wait(dsn: str, database: Connection) -> None:
    async with runner(dsn) as app:
        seen = Seen()
        waiting = asyncio.create_task(
            (await app.enqueue("later", delay="1h")).wait(120, on_status=seen)
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
                await app.handle(1).wait(120)
    finally:
        await database.execute("DROP ROLE hr_nothing_to_see")


async def test_a_wait_goes_on_through_a_restart_of_postgres() -> None:
    async with own_server() as server, runner(server.dsn) as app:
        handles = [await app.enqueue("later", delay="1h") for _ in range(2)]
        seen = [Seen(), Seen()]
        waits = [
            asyncio.create_task(handle.wait(240, on_status=each))
            for handle, each in zip(handles, seen, strict=True)
        ]
        await asyncio.gather(*(each.event.wait() for each in seen))
        for how in (signal.SIGINT, signal.SIGQUIT):  # in order, and as when it crashes
            with noticed_outage() as noticed:
                await server.stop(how)
                await noticed.wait()
            await server.start()
            connection = await connect(server.dsn)
            state = await connection.fetchval(
                "SELECT hybrid_runner.cancel(id) FROM hybrid_runner.jobs ORDER BY id LIMIT 1"
            )
            assert state == "cancelled"
            await connection.close()
            with pytest.raises(JobCancelled):
                await waits.pop(0)


@pytest.mark.parametrize("job_id", [2**63, 2**70, -(2**64), "7", None, 1.5])
async def test_an_id_that_no_job_can_have_gets_no_handle(job_id: Any) -> None:
    app = runner("postgresql://nobody@localhost/never-opened")
    with pytest.raises(ConfigurationError, match="is no id of a job"):
        app.handle(job_id)


async def test_a_job_that_cannot_be_looked_at_ends_its_own_waits_alone() -> None:
    refused = 3

    async def look(ids: Sequence[int]) -> Sequence[JobStatus]:
        if refused in ids:
            raise DatabaseError("missing chunk number 0 for toast value 16444")
        state = State.COMPLETED if looked else State.RUNNING
        return [JobStatus(each, "k", state, None, None, "1") for each in ids]

    looked = list[bool]()
    watcher = Watcher(look)
    waits = [asyncio.create_task(watcher.ended(each, 120, None)) for each in range(1, 6)]
    with pytest.raises(DatabaseError, match="toast"):
        await waits.pop(refused - 1)
    looked.append(True)
    assert [(await each).id for each in waits] == [1, 2, 4, 5]
    await watcher.close()


async def test_what_ends_all_waits_ends_each_with_an_error_of_its_own(
    dsn: str, database: Connection
) -> None:
    async with runner(dsn) as app:
        ids = [(await app.enqueue("later", delay="1h")).id for _ in range(12)]
        await database.execute("DROP SCHEMA hybrid_runner CASCADE")
        errors = await asyncio.gather(
            *(app.handle(each).wait(120) for each in ids), return_exceptions=True
        )
    assert {type(error) for error in errors} == {SchemaMissing}
    assert len({id(error) for error in errors}) == len(ids)
