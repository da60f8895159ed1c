"""Workers fire schedules: those that they declare, and those that were made in SQL."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import psycopg
import pytest

from hybrid_runner import Job, Runner
from hybrid_runner.storage import tick_calls
from hybrid_runner.storage.connections.connection import Connection
from hybrid_runner.worker.worker import Worker
from tests.support import inside
from tests.support.waiting import at_least, until, until_fetched
from tests.support.working import runner, working

RARE: dict[str, Any] = {"heartbeat": "10m", "lease": "30m"}
"""But for the first ones, no heartbeat brings anything while a test runs."""
OFTEN: dict[str, Any] = {"heartbeat": "200ms"}
DEAD_END: dict[str, Any] = {"listen_dsn": "postgresql://nobody@127.0.0.1:1/nowhere"}
SOON = (
    "INSERT INTO hybrid_runner.schedules (name, kind, every, overlap)"
    " VALUES ('soon', 'note', '1 second', 'allow')"
)
MADE = "SELECT count(*) FROM hybrid_runner.archive WHERE schedule = 'soon'"
SESSIONS = (
    "SELECT count(*) FROM pg_stat_activity"
    " WHERE datname = current_database() AND application_name = 'hybrid-runner ticks'"
)


def noting(dsn: str, noted: list[Job], **settings: Any) -> Runner:
    """An app that keeps the jobs that it is given."""
    app = runner(dsn, **settings)

    @app.job("note")
    async def note(_: Any, job: Job) -> None:
        noted.append(job)

    return app


def fired(worker: Worker) -> float:
    values = worker.status().metric_values["hybrid_runner_ticks_total"]
    return float(values["pulse", "fired"])  # type: ignore[arg-type]


async def test_a_declared_schedule_makes_jobs_that_know_their_tick(
    dsn: str, database: Connection
) -> None:
    noted: list[Job] = []
    app = noting(dsn, noted, **RARE)
    app.schedule("pulse", "note", {"n": 1}, every="1s")
    async with working(app) as worker:
        await until(lambda: len(noted), at_least(2))
        # A job may have begun before whoever fired it has counted it.
        await until(lambda: fired(worker), at_least(2))
        assert await database.fetchval("SELECT schedules FROM hybrid_runner.workers") == ["pulse"]
    ticks = [job.tick for job in noted]
    assert len({*ticks}) == len(ticks)
    assert all(tick is not None and tick.microsecond == 0 for tick in ticks)
    assert {job.schedule for job in noted} == {"pulse"}


async def test_once_the_last_worker_that_declares_it_has_gone_it_is_due_no_more(
    dsn: str, database: Connection
) -> None:
    noted: list[Job] = []
    app = noting(dsn, noted)
    app.schedule("pulse", "note", every="1s")
    async with working(app):
        await until(lambda: len(noted))
    assert await tick_calls.next_tick(database) is None
    assert await database.fetchval("SELECT count(*) FROM hybrid_runner.schedules") == 1
    async with working(noting(dsn, noted)):
        assert await tick_calls.next_tick(database) is None
        assert await tick_calls.fire_schedules(database, 100) == []


async def test_a_schedule_that_is_made_in_sql_fires_by_its_ring(
    dsn: str, database: Connection
) -> None:
    """The next heartbeat is minutes away."""
    async with working(noting(dsn, [], **RARE)):
        await database.execute(SOON)
        await until(lambda: database.fetchval(MADE), at_least(2))


async def test_a_deaf_worker_fires_by_its_heartbeat(dsn: str, database: Connection) -> None:
    app = noting(dsn, [], poll_base="200ms", poll_cap="200ms", **OFTEN, **DEAD_END)
    async with working(app, deaf=True):
        await database.execute(SOON)
        await until(lambda: database.fetchval(MADE), at_least(2))


async def test_a_handler_that_holds_the_event_loop_holds_up_no_tick(
    dsn: str, database: Connection
) -> None:
    app = runner(dsn, stall_after="1h", **RARE)
    began = threading.Event()
    seen: list[int] = []

    @app.job("note")
    async def note(_: Any) -> None:
        pass

    @app.job("hold")
    async def hold(_: Any) -> None:
        """Nothing else runs in this loop until three more jobs are there."""
        began.set()
        with psycopg.connect(dsn, autocommit=True) as connection:
            count = "SELECT count(*) FROM hybrid_runner.schedules WHERE fired > 3"
            while not connection.execute(count).fetchone()[0]:  # type: ignore[index]
                began.wait(0.01)
        seen.append(1)

    async with working(app) as worker:
        await database.execute(SOON)
        await until(lambda: database.fetchval(MADE), at_least(1))
        await app.enqueue(hold, {})
        await asyncio.wait_for(until(lambda: seen, bool), 120)
        assert worker.status().stalls == 0


async def test_without_schedules_there_is_no_session_and_no_timer(
    dsn: str, database: Connection
) -> None:
    async with working(noting(dsn, [], **OFTEN)) as worker:
        beat = "SELECT heartbeat_at FROM hybrid_runner.workers"
        first = await database.fetchval(beat)
        await until(lambda: database.fetchval(beat), lambda at: (at - first).total_seconds() > 1)
        assert await database.fetchval(SESSIONS) == 0
        assert inside.looks_for_ticks_at(worker) is None


async def test_what_postgres_refuses_is_tried_again(
    dsn: str, database: Connection, caplog: pytest.LogCaptureFixture
) -> None:
    rename = "ALTER FUNCTION hybrid_runner.{}(integer) RENAME TO {}"
    async with working(noting(dsn, [], **RARE)):
        await database.execute(rename.format("fire_schedules", "another"))
        await database.execute(SOON)
        await until(lambda: "firing schedules" in caplog.text)
        await database.execute(rename.format("another", "fire_schedules"))
        await until(lambda: database.fetchval(MADE), at_least(1))


async def test_what_an_open_transaction_holds_is_declared_with_a_later_heartbeat(
    dsn: str, database: Connection, caplog: pytest.LogCaptureFixture
) -> None:
    app = noting(dsn, [], **OFTEN)
    app.schedule("soon", "note", every="1s", overlap="allow")
    stored = "SELECT count(*) FROM hybrid_runner.schedules WHERE declared AND priority = 5"
    held = database.transaction()
    await held.start()
    await database.execute(SOON.replace("every", "priority, every").replace("'1 s", "3, '9 s"))
    # Nobody falls asleep while a transaction is open: it may have inserted jobs.
    async with working(app, deaf=True):
        assert "schedule soon cannot be stored yet" in caplog.text
        await held.commit()
        await until_fetched(database, stored, 1)
        await until(lambda: database.fetchval(MADE), at_least(1))


async def test_one_look_fires_so_many_and_the_next_comes_at_once(
    dsn: str, database: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hybrid_runner.worker.liveness.tick_loop.MOST", 7)
    async with working(noting(dsn, [], **RARE)):
        await database.execute(
            "INSERT INTO hybrid_runner.schedules (name, kind, at)"
            " SELECT 'at-' || n, 'note', now() - interval '1 second'"
            " FROM generate_series(1, 50) AS n"
        )
        await until_fetched(
            database, "SELECT count(*) FROM hybrid_runner.archive WHERE schedule LIKE 'at-%'", 50
        )


async def test_while_somebody_holds_what_is_due_all_else_fires_in_time(
    dsn: str, database: Connection
) -> None:
    """No heartbeat and no ring would bring it, nor the looks that follow one in vain."""
    await database.execute(SOON.replace("'soon'", "'held'"))
    async with working(noting(dsn, [], **RARE)):
        await database.execute(SOON.replace("1 second", "3 seconds"))
        await until(lambda: database.fetchval(MADE), at_least(1))
        held = database.transaction()
        await held.start()
        await database.execute("SELECT hybrid_runner.run_now('held')")
        made = await database.fetchval(MADE)
        await until(lambda: database.fetchval(MADE), at_least(made + 2))
        await held.rollback()
