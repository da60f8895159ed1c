"""A session of a worker is ended once, in the middle of its work: it is opened again at once.

Pauses after failures last an hour here, so whoever pauses is seen to wait in vain.
"""

from __future__ import annotations

import asyncio
import logging

import pytest

from hybrid_runner import Job, Worker
from hybrid_runner.errors import ConnectionLost
from hybrid_runner.policy.doorbell import Reason
from hybrid_runner.storage.connections.connection import Connection, connect
from hybrid_runner.storage.connections.lazy import LazyConnection
from hybrid_runner.web.pages.health import checks_of
from tests.support import inside
from tests.support.bells import seen
from tests.support.busy import INSERT, LEFT, App, ended
from tests.support.faults import end_sessions
from tests.support.waiting import equals, until
from tests.support.working import working

WAITS = (
    "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
    " AND application_name = $1 AND wait_event_type = 'Lock'"
)

END_A_CLIENT = (
    "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity"
    " WHERE datname = current_database() AND application_name = 'hybrid-runner'"
    " AND wait_event_type = 'Lock'"
)


@pytest.fixture(autouse=True)
def endless_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    inside.make_outages_short(monkeypatch, 3600, 3600)
    inside.let_listeners_be_lost_soon(monkeypatch)


def failed_checks(worker: Worker) -> list[str]:
    return [check.name for check in checks_of(worker.status()) if check.severity == "failed"]


def failures(caplog: pytest.LogCaptureFixture) -> list[str]:
    """What was logged about connections, and all errors."""
    return [
        record.getMessage()
        for record in caplog.records
        if record.levelno >= logging.ERROR
        or getattr(record, "event", "") in ("outage.failed", "listener.lost")
    ]


@pytest.mark.parametrize(
    ("purpose", "table"),
    [
        ("claims", "jobs"),
        ("settles", "jobs"),
        ("courtesies", "jobs"),
        ("heartbeat", "workers"),
    ],
)
async def test_a_session_that_is_ended_in_the_middle_of_a_statement_costs_one_line(
    purpose: str, table: str, dsn: str, database: Connection, caplog: pytest.LogCaptureFixture
) -> None:
    app, asked, told = App(dsn), asyncio.Event(), asyncio.Event()

    @app.runner.job("tell")
    async def tell(payload: object, job: Job) -> None:
        told.set()
        await asked.wait()
        await job.progress(0.5, "half way")

    name = f"hybrid-runner {purpose}"
    async with working(app.runner) as worker:
        await database.fetch(INSERT, "hold", 1)
        await database.fetch(INSERT, "tell", 1)
        await until(lambda: app.holding == 1)
        await told.wait()
        blocker = await connect(dsn)
        async with blocker.transaction():
            await blocker.execute(f"LOCK TABLE hybrid_runner.{table} IN SHARE ROW EXCLUSIVE MODE")
            inside.wake(worker, Reason.HELP)
            inside.beat_soon(worker)
            app.let_go.set()
            asked.set()
            await until(lambda: database.fetchval(WAITS, name))
            assert await end_sessions(database, name) == 1
        await blocker.close()
        beaten_at = inside.beaten_at(worker)
        inside.beat_soon(worker)
        await database.fetch(INSERT, "brief", 20)
        await ended(worker, 22)
        await until(lambda: inside.beaten_at(worker) > beaten_at)
        assert app.ran_once
        assert await database.fetchval(LEFT) == 0
        assert len(failures(caplog)) <= 1
        assert failed_checks(worker) == []
    assert await database.fetchval("SELECT max(attempt) FROM hybrid_runner.archive") == 1


async def test_a_listener_that_is_ended_hears_again_without_a_pause(
    dsn: str, database: Connection, caplog: pytest.LogCaptureFixture
) -> None:
    app = App(dsn)
    async with working(app.runner) as worker:
        before = inside.session(worker)
        await database.fetch(INSERT, "brief", 100)
        assert await end_sessions(database, "hybrid-runner listener") == 1
        await ended(worker, 100)
        await until(lambda: inside.session(worker) not in (before, None))
        await until(lambda: seen(worker).mode, equals("asleep"))
        await database.fetch(INSERT, "brief", 1)
        await ended(worker, 101)
        assert app.ran_once
        assert len(failures(caplog)) == 1
        assert failed_checks(worker) == []


async def test_a_deaf_worker_keeps_looking_while_jobs_come_briskly(
    dsn: str, database: Connection
) -> None:
    """Its polls are minutes away, and nothing else tells it of what comes."""
    deaf = {"poll_base": "5m", "poll_cap": "5m", "listen_dsn": "postgresql://nobody@127.0.0.1:1/x"}
    app = App(dsn, slots=1000, **deaf)
    async with working(app.runner, deaf=True) as worker:
        await until(lambda: seen(worker).looks)

        async def insert_briskly() -> None:
            while not seen(worker).found.get("look"):
                await database.fetch(INSERT, "brief", 20)
                inside.wake(worker, Reason.HELP)  # somebody says so once
                await until(lambda: seen(worker).running, equals(0))
                await database.fetch(INSERT, "brief", 20)  # nobody does

        await asyncio.wait_for(insert_briskly(), 120)
        assert not worker.status().hearing


async def test_a_wait_whose_session_is_ended_looks_again_at_once(
    dsn: str, database: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    inside.make_waits_pause(monkeypatch, 3600)
    app = App(dsn)
    async with working(app.runner):
        handle = await app.runner.enqueue("hold", {})
        await until(lambda: app.holding == 1)
        awaited = asyncio.create_task(handle.wait(120))
        async with database.transaction():
            await database.execute("LOCK TABLE hybrid_runner.jobs")
            await until(lambda: database.fetchval(END_A_CLIENT))
        app.let_go.set()
        assert await awaited == "let go"


async def test_upkeep_whose_session_is_ended_is_done_all_the_same(
    dsn: str, database: Connection
) -> None:
    """The news of a death comes once."""
    app, tries = App(dsn), list[str]()
    async with working(app.runner) as worker:

        def ended_once(rescue: inside.Call) -> inside.Call:
            async def rescue_later(on: LazyConnection) -> None:
                tries.append("rescue")
                if len(tries) == 1:
                    await on.fetch("SELECT pg_terminate_backend(pg_backend_pid())")
                await rescue(on)

            return rescue_later

        inside.replace_rescue(worker, ended_once)
        inside.rescue_first(worker)
        inside.beat_soon(worker)
        await until(lambda: len(tries), equals(2))
        assert failed_checks(worker) == []


async def test_the_first_statement_after_a_lost_connection_says_so(
    dsn: str, database: Connection
) -> None:
    connection = LazyConnection(dsn)
    with pytest.raises(ConnectionLost):
        await connection.fetch("SELECT pg_terminate_backend(pg_backend_pid())")
    assert await connection.fetch("SELECT 1")
    sleeping = asyncio.create_task(connection.fetch("SELECT pg_sleep(60), 'mark of a test'"))
    await until(
        lambda: database.fetchval(
            "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity"
            " WHERE query LIKE '%mark of a test%' AND pid <> pg_backend_pid()"
        )
    )
    with pytest.raises(ConnectionLost):
        await sleeping
    await connection.close()
