"""Sync handlers share a bounded number of threads; what waits for one has not begun."""

from __future__ import annotations

import asyncio
import logging
import threading
from typing import Any

import pytest

from hybrid_runner import Job, JobHandle, JobKind, Runner, State
from hybrid_runner.worker.run import places
from tests.support.waiting import until
from tests.support.working import outcome, runner, working
from tests.worker import handlers


class Gate:
    """A sync handler that stays until it is let go, and how many were inside at a time."""

    def __init__(self, app: Runner, **options: Any) -> None:
        self.open = threading.Event()
        self.entered = threading.Semaphore(0)
        self.inside = self.most = 0
        self._lock = threading.Lock()
        self.kind = app.job("pass", **options)(self._passes())

    def _passes(self) -> Any:
        def passes(_: Any, job: Job) -> int:
            with self._lock:
                self.inside += 1
                self.most = max(self.most, self.inside)
            self.entered.release()
            self.open.wait(120)
            with self._lock:
                self.inside -= 1
            return job.attempt

        return passes

    async def full(self, count: int) -> None:
        """Wait until so many have entered."""
        for _ in range(count):
            assert await asyncio.to_thread(self.entered.acquire, timeout=120)


async def all_of(handles: list[JobHandle[Any]]) -> list[Any]:
    return [await handle.wait(120) for handle in handles]


async def test_no_more_sync_handlers_run_at_a_time_than_there_are_threads(
    dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(places, "PATIENCE", 60)  # none goes back before the last one has come
    app = runner(dsn, thread_slots=2)
    gate = Gate(app)
    async with working(app, {"default": 10}) as worker:
        handles = [await app.enqueue("pass", {}) for _ in range(6)]
        await gate.full(2)
        status = await until(worker.status, lambda status: status.waiting == 4)
        assert status.running == 6
        gate.open.set()
        assert await all_of(handles) == [1] * 6
        assert gate.most == 2
        assert worker.status().waiting == 0


async def test_a_time_out_counts_from_when_the_job_has_a_thread(dsn: str) -> None:
    app = runner(dsn, thread_slots=1)
    gate = Gate(app)
    ran: list[bool] = []

    @app.job("quick", timeout=3, max_attempts=1)
    def quick(_: Any) -> None:
        ran.append(True)

    async with working(app, {"default": 10}):
        first = await app.enqueue("pass", {})
        await gate.full(1)
        second = await app.enqueue(quick, {})
        threading.Timer(3.5, gate.open.set).start()
        await all_of([first, second])
    assert ran == [True]


async def test_a_job_that_waits_for_a_thread_can_be_cancelled_and_never_runs(dsn: str) -> None:
    app = runner(dsn, thread_slots=1)
    gate = Gate(app)
    async with working(app, {"default": 10}) as worker:
        first = await app.enqueue("pass", {})
        await gate.full(1)
        second = await app.enqueue("pass", {})
        await until(lambda: worker.status().waiting)
        await second.cancel()
        await until(lambda: not worker.status().waiting)
        gate.open.set()
        await first.wait(120)
        await worker.idle()
        assert (await second.get()).state is State.CANCELLED
        assert gate.most == 1


async def test_a_thread_that_outlives_its_attempt_is_not_counted_twice(dsn: str) -> None:
    app = runner(dsn, thread_slots=1)
    gate = Gate(app, max_attempts=1)
    async with working(app, {"default": 10}) as worker:
        first = await app.enqueue("pass", {}, timeout=0.5)
        await gate.full(1)
        await until(first.get, lambda job: job.state is State.FAILED)
        second = await app.enqueue("pass", {})
        await until(lambda: worker.status().waiting)
        assert gate.most == 1
        gate.open.set()
        assert await second.wait(120) == 1


@pytest.mark.parametrize(
    ("kinds", "slots"),
    [
        ({"a": "async"}, 20),
        ({"a": "thread"}, 3),
        ({"a": "process"}, 2),
        ({"a": "thread", "b": "process"}, 5),
        ({"a": "async", "b": "thread"}, 20),
    ],
)
def test_a_queue_without_async_handlers_takes_no_more_jobs_than_can_run(
    kinds: dict[str, Any], slots: int
) -> None:
    app = Runner(
        "postgresql://nobody@localhost/never-opened", slots=20, thread_slots=3, process_slots=2
    )
    for name, executor in kinds.items():
        handler: JobKind[Any, Any] = (
            handlers.add if executor == "async" else handlers.add_in_process
        )
        app.job(name, queue="images", executor=executor)(handler.function)
    assert (app.usual_slots("images"), app.usual_slots("default")) == (slots, slots)


async def test_the_log_says_where_sync_handlers_run(
    dsn: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "hybrid_runner")
    app = runner(dsn, thread_slots=7)
    Gate(app)
    async with working(app):
        pass
    assert "sync handlers share 7 threads (thread_slots): pass" in caplog.text


async def test_a_thread_that_outlives_its_attempt_keeps_its_slot_until_it_ends(dsn: str) -> None:
    app = runner(dsn)
    release = threading.Event()

    @app.job("stuck", max_attempts=1, timeout=0.5)
    def stuck(payload: dict[str, int]) -> None:
        release.wait()

    async with working(app, {"default": 2}) as worker:
        try:
            job = await outcome(app, "stuck")
            assert job.errors[0]["type"] == "TimeoutError"
            assert worker.status().queues[0].running == 1
        finally:
            release.set()
        await until(lambda: not worker.status().queues[0].running)
