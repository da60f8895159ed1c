"""A handler that cancels all tasks of its loop, and the attempts, loops and processes beside it."""

from __future__ import annotations

import asyncio
import threading
from typing import Annotated, Any

import pytest
from pydantic import AfterValidator

from hybrid_runner import Job, State
from hybrid_runner.storage.connections.connection import Connection
from tests.support import inside
from tests.support.bells import seen
from tests.support.waiting import until
from tests.support.working import runner, working


async def test_attempts_that_were_cancelled_before_they_began_go_back_uncharged(
    dsn: str, database: Connection
) -> None:
    """All thirty were claimed by one look with the handler that cancels them."""
    app, mine = runner(dsn, slots=40), asyncio.all_tasks()
    attempts: list[int] = []

    @app.job("tidy")
    async def tidy(_: Any) -> None:
        for task in asyncio.all_tasks() - mine - {asyncio.current_task()}:
            task.cancel()

    @app.job("quick")
    async def quick(_: Any, job: Job) -> None:
        attempts.append(job.attempt)

    async with app:
        mine |= asyncio.all_tasks()
        await database.execute("INSERT INTO hybrid_runner.jobs (kind, priority) VALUES ('tidy', 0)")
        await database.execute(
            "INSERT INTO hybrid_runner.jobs (kind) SELECT 'quick' FROM generate_series(1, 30)"
        )
        async with app.worker() as worker:
            async with asyncio.timeout(120):
                await worker.settled(31)
            async with asyncio.timeout(120):
                await worker.idle()
            assert seen(worker).running == 0
    assert attempts == [1] * 30


async def test_jobs_whose_start_failed_are_found_again(dsn: str, database: Connection) -> None:
    """Whatever happens between the answer to a claim and the tasks of its jobs."""
    app = runner(dsn, slots=10)

    @app.job("quick")
    async def quick(_: Any, job: Job) -> int:
        return job.attempt

    async with working(app) as worker:
        inside.fail_to_start_once(worker)
        ids = await app.enqueue_many("quick", [{}] * 5)
        async with asyncio.timeout(120):
            await worker.settled(5)
        jobs = [await app.get(each.id) for each in ids]
        assert seen(worker).running == 0
    assert [(job.state, job.result) for job in jobs if job] == [(State.COMPLETED, 1)] * 5


async def test_a_handler_that_ignores_its_cancellation_is_told_again(
    dsn: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    inside.make_reminders_short(monkeypatch, 0.02)
    app, told = runner(dsn), 0

    @app.job("stubborn", timeout=0.05, max_attempts=1)
    async def stubborn(_: Any) -> None:
        nonlocal told
        while told < 4:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                told += 1
        await asyncio.Event().wait()

    async with working(app) as worker:
        await app.enqueue(stubborn, {})
        async with asyncio.timeout(120):
            await worker.settled(1)
        await until(lambda: seen(worker).running == 0)
    assert told == 4
    ignored = [r for r in caplog.records if getattr(r, "event", "") == "job.stop_ignored"]
    assert len(ignored) == 1


@pytest.mark.parametrize("error", [SystemExit(3), KeyboardInterrupt(), GeneratorExit()], ids=repr)
async def test_whatever_a_validator_raises_refuses_the_payload_and_ends_no_worker(
    dsn: str, database: Connection, error: BaseException
) -> None:
    def refuse(_: Any) -> Any:
        raise error

    async def odd(payload: Any) -> None: ...

    odd.__annotations__["payload"] = Annotated[Any, AfterValidator(refuse)]
    app = runner(dsn)
    app.job("odd")(odd)
    async with working(app) as worker:
        job_id = await database.fetchval(
            "INSERT INTO hybrid_runner.jobs (kind) VALUES ('odd') RETURNING id"
        )
        async with asyncio.timeout(120):
            await worker.settled(1)
        job = await app.get(job_id)
    assert job is not None
    assert (job.state, job.errors[0]["type"]) == (State.FAILED, "PayloadRefused")


async def test_an_attempt_that_waits_for_a_thread_and_is_cancelled_goes_back_uncharged(
    dsn: str, database: Connection
) -> None:
    app, mine = runner(dsn, slots=10, thread_slots=1), asyncio.all_tasks()
    goes_on = threading.Event()

    @app.job("hold")
    def hold(_: Any) -> None:
        goes_on.wait()

    @app.job("brief", max_attempts=1)
    def brief(_: Any, job: Job) -> int:
        return job.attempt

    @app.job("tidy")
    async def tidy(_: Any) -> None:
        for task in asyncio.all_tasks() - mine - {asyncio.current_task()}:
            task.cancel()

    async with app, app.worker() as worker:
        mine |= asyncio.all_tasks()
        held = await app.enqueue(hold, {})
        await until(held.get, lambda job: job.state is State.RUNNING)
        waiting = await app.enqueue(brief, {})
        await until(lambda: worker.status().waiting == 1)
        await database.execute("INSERT INTO hybrid_runner.jobs (kind) VALUES ('tidy')")
        async with asyncio.timeout(120):
            await worker.settled(1)
        goes_on.set()
        assert await waiting.wait(120) == 1
