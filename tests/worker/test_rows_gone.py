"""A job whose row was deleted while it ran does not go on unseen."""

from __future__ import annotations

import asyncio

import pytest

from hybrid_runner import Job
from hybrid_runner.storage.connections.connection import Connection
from tests.support.waiting import equals, until
from tests.support.working import runner, working

INSERT = (
    "INSERT INTO hybrid_runner.jobs (kind, payload) SELECT $1, to_jsonb(n) FROM generate_series(1,"
    " $2::int) AS n"
)


@pytest.mark.parametrize(
    "statement",
    ["DELETE FROM hybrid_runner.jobs WHERE payload <> '3'", "TRUNCATE hybrid_runner.jobs"],
)
async def test_its_handler_is_stopped_within_a_heartbeat_and_its_outcome_dropped(
    dsn: str, database: Connection, caplog: pytest.LogCaptureFixture, statement: str
) -> None:
    """B4"""
    caplog.set_level("INFO", "hybrid_runner")
    app = runner(dsn, heartbeat="100ms", lease="2s")
    began, over, stopped = asyncio.Semaphore(0), asyncio.Event(), list[int]()

    @app.job("note")
    async def note(payload: int) -> None:
        began.release()
        try:
            await over.wait()
        except asyncio.CancelledError:
            stopped.append(payload)
            raise

    kept = [] if "TRUNCATE" in statement else [3]
    await database.execute(INSERT, "note", 3)
    async with working(app, deaf=True) as worker, asyncio.timeout(120):
        for _ in range(3):
            await began.acquire()
        await database.execute(statement)
        while worker.status().stale < 3 - len(kept):
            await asyncio.sleep(0.01)
        assert sorted(stopped) == [one for one in (1, 2, 3) if one not in kept]
        assert worker.status().running == len(kept)
        over.set()
        await worker.settled(len(kept))
    dropped = [
        message for message in caplog.messages if "its outcome" in message and "dropped" in message
    ]
    assert len(dropped) == 3 - len(kept)
    assert await database.fetchval("SELECT count(*) FROM hybrid_runner.archive") == len(kept)


async def test_a_thread_can_see_that_it_shall_stop(dsn: str, database: Connection) -> None:
    """B4"""
    app = runner(dsn, heartbeat="100ms", lease="2s")
    began = asyncio.Event()
    loop = asyncio.get_running_loop()

    @app.job("note")
    def note(payload: int, job: Job) -> None:
        loop.call_soon_threadsafe(began.set)
        while not job.cancel_requested:
            pass

    await database.execute(INSERT, "note", 1)
    async with working(app, deaf=True) as worker, asyncio.timeout(120):
        await began.wait()
        await database.execute("DELETE FROM hybrid_runner.jobs")
        while worker.status().stale < 1:
            await asyncio.sleep(0.01)


async def test_a_handler_that_completed_its_job_itself_goes_on(
    dsn: str, database: Connection
) -> None:
    app = runner(dsn, heartbeat="100ms", lease="2s")
    completed, over, ended = asyncio.Event(), asyncio.Event(), asyncio.Event()

    @app.job("note")
    async def note(payload: int, job: Job) -> None:
        await job.complete(connection=database)
        completed.set()
        await over.wait()
        ended.set()

    await database.execute(INSERT, "note", 1)
    beaten = "SELECT heartbeat_at FROM hybrid_runner.workers"
    async with working(app, deaf=True) as worker, asyncio.timeout(120):
        await completed.wait()
        beats = set[object]()
        while len(beats) < 4:
            beats.add(await database.fetchval(beaten))
        over.set()
        await worker.settled(1)
        assert ended.is_set()
        assert worker.status().stale == 0


async def test_a_handler_that_cleans_up_is_not_stopped_again_at_every_heartbeat(
    dsn: str, database: Connection
) -> None:
    app = runner(dsn, heartbeat="100ms", lease="2s")
    began, over, stops = asyncio.Event(), asyncio.Event(), list[str]()

    @app.job("note")
    async def note(payload: int) -> None:
        began.set()
        while not over.is_set():
            try:
                await over.wait()
            except asyncio.CancelledError:
                stops.append("stopped")

    await database.execute(INSERT, "note", 1)
    async with working(app, deaf=True) as worker, asyncio.timeout(120):
        await began.wait()
        await database.execute("DELETE FROM hybrid_runner.jobs")
        await until(lambda: stops)
        beats = set[object]()
        while len(beats) < 5:
            beats.add(await database.fetchval("SELECT heartbeat_at FROM hybrid_runner.workers"))
        over.set()
        assert len(stops) == 1
        await until(lambda: worker.status().stale, equals(1))
