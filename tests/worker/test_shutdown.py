import asyncio
import contextlib
from typing import Any

import pytest

from hybrid_runner import Job, State
from hybrid_runner.storage import worker_calls
from hybrid_runner.storage.connections.connection import Connection
from tests.support import inside
from tests.support.waiting import until
from tests.support.working import runner, working


async def test_a_stop_waits_for_running_jobs_and_leaves_no_trace_of_the_worker(
    dsn: str, database: Connection
) -> None:
    """A13"""
    app = runner(dsn)
    started = asyncio.Event()

    @app.job("brief")
    async def brief(payload: dict[str, int]) -> str:
        started.set()
        await asyncio.sleep(0.1)
        return "done"

    async with working(app):
        handle = await app.enqueue(brief, {})
        await started.wait()
        assert await database.fetchval("SELECT count(*) FROM hybrid_runner.workers") == 1
    assert (
        await database.fetchval("SELECT state FROM hybrid_runner.all_jobs WHERE id = $1", handle.id)
        == "completed"
    )
    assert await database.fetchval("SELECT count(*) FROM hybrid_runner.workers") == 0


async def test_jobs_that_outlast_the_grace_go_back_uncharged_and_due_at_once(
    dsn: str, database: Connection
) -> None:
    """It ends at all: the handler never would."""
    app = runner(dsn, grace="100ms")
    started = asyncio.Event()

    @app.job("long")
    async def long(payload: dict[str, int], job: Job) -> None:
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            raise ValueError("cleaning up went wrong")

    async with working(app):
        handle = await app.enqueue(long, {})
        await started.wait()
    row = await database.fetchrow(
        "SELECT state, attempt, claim, errors, run_at <= now() AS due FROM hybrid_runner.jobs WHERE"
        " id = $1",
        handle.id,
    )
    assert row is not None
    assert (row["state"], row["attempt"], row["claim"], row["errors"], row["due"]) == (
        "queued",
        0,
        None,
        None,
        True,
    )


async def test_a_claim_on_its_way_when_the_stop_comes_is_not_lost(
    dsn: str, database: Connection
) -> None:
    """Stopped again and again in the middle of a drain, nothing is left running and nothing is
    lost.
    """
    ran: list[int] = []
    for _ in range(5):
        app = runner(dsn)

        @app.job("note")
        async def note(payload: dict[str, int], job: Job) -> None:
            ran.append(job.id)

        async with working(app) as worker:
            await app.enqueue_many(note, [{} for _ in range(200)])
            await worker.settled(20)
        assert (
            await database.fetchval(
                "SELECT count(*) FROM hybrid_runner.jobs WHERE state = 'running'"
            )
            == 0
        )
    app = runner(dsn)
    app.registry.add(note)
    async with working(app) as worker:
        while await database.fetchval("SELECT count(*) FROM hybrid_runner.jobs"):
            await worker.idle()
    assert len(ran) == len(set(ran)) == 1000
    assert (
        await database.fetchval(
            "SELECT count(*) FROM hybrid_runner.archive WHERE state = $1", State.COMPLETED
        )
        == 1000
    )


async def test_a_worker_that_is_declared_dead_and_stopped_claims_nothing_more(
    dsn: str, database: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its new registration is on its way when the stop comes."""
    register, asked, answer = worker_calls.register_worker, asyncio.Event(), asyncio.Event()
    inside.make_last_claims_long(monkeypatch)  # what does not end by itself does not end at all
    app = runner(dsn, heartbeat="100ms", lease="2s", grace="10m")
    over, ran = asyncio.Event(), asyncio.Event()

    @app.job("long")
    async def long(payload: object) -> None:
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.Event().wait()
        await over.wait()  # the stop has to wait for it

    @app.job("note")
    async def note(payload: object) -> None:
        ran.set()

    async with working(app) as worker, asyncio.timeout(120):
        await app.enqueue(long, 1)
        await until(lambda: worker.status().running)

        async def held(*arguments: Any) -> Any:
            asked.set()
            await answer.wait()
            return await register(*arguments)

        monkeypatch.setattr(worker_calls, "register_worker", held)
        await database.execute("UPDATE hybrid_runner.workers SET dead_at = now()")
        await asked.wait()
        worker_id = worker.id
        await app.enqueue(note, 1)
        await until(lambda: inside.waits_to_claim(worker))
        stop = asyncio.create_task(worker.stop())
        await until(lambda: not inside.waits_to_claim(worker))
        answer.set()
        await until(lambda: worker.id != worker_id)
        over.set()
        await stop
    assert not ran.is_set()
    left = await database.fetch("SELECT id FROM hybrid_runner.workers WHERE dead_at IS NULL")
    assert left == []


async def test_a_start_that_fails_after_the_registration_leaves_no_row(
    dsn: str, database: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    app, asked = runner(dsn), asyncio.Event()

    @app.job("note")
    async def note(payload: object) -> None: ...

    async def held(*_: object) -> None:
        asked.set()
        await asyncio.Event().wait()

    monkeypatch.setattr(worker_calls, "keep_jobs", held)
    async with app:
        start = asyncio.create_task(app.worker().start())
        await asked.wait()
        assert await database.fetchval("SELECT count(*) FROM hybrid_runner.workers") == 1
        start.cancel()
        with pytest.raises(asyncio.CancelledError):
            await start
    assert await database.fetchval("SELECT count(*) FROM hybrid_runner.workers") == 0
