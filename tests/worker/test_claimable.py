"""A worker claims nothing that would wait in it for a thread while another worker has one."""

from __future__ import annotations

import asyncio
import logging
import math
from typing import Any

import pytest

from hybrid_runner import JobView, RetryPolicy, Runner, State, Worker
from hybrid_runner.handlers.declaration import make_kind
from hybrid_runner.handlers.kind import Executor
from hybrid_runner.handlers.registry import Registry
from hybrid_runner.worker.queue.claimable import Claimable
from hybrid_runner.worker.run import places as places_module
from hybrid_runner.worker.run.places import NoPlace, Places
from tests.support.waiting import until
from tests.support.working import runner, working
from tests.worker.test_thread_slots import Gate

SLOTS = {"default": 10}


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """What waits for a thread goes back soon."""
    monkeypatch.setattr(places_module, "PATIENCE", 0.05)


async def queued_again(app: Runner, job_id: int) -> JobView:
    """The job once it was claimed and released."""
    job = await until(lambda: app.get(job_id), is_queued_again)
    assert job is not None
    return job


def is_queued_again(job: JobView | None) -> bool:
    return job is not None and job.state is State.QUEUED and job.version > 1


@pytest.mark.parametrize("outlives", [False, True], ids=["hangs", "hangs past its time-out"])
async def test_jobs_behind_a_hung_sync_handler_run_in_another_worker(
    dsn: str, *, outlives: bool
) -> None:
    stuck, idle = runner(dsn, thread_slots=1), runner(dsn, thread_slots=1)
    options: dict[str, Any] = {"timeout": 0.5, "max_attempts": 1} if outlives else {}
    gate, free = Gate(stuck), Gate(idle)
    free.open.set()
    async with working(stuck, SLOTS, worker_id="stuck") as worker:
        hung = await stuck.enqueue("pass", {}, **options)
        await gate.full(1)
        if outlives:
            await until(hung.get, lambda job: job.state is State.FAILED)
        # By one insert: what came later would not be claimed once the first of them came back.
        handles = [stuck.handle(job.id) for job in await stuck.enqueue_many("pass", [{}] * 5)]
        await until(lambda: worker.status().waiting == 5)
        async with working(idle, SLOTS, worker_id="idle"):
            assert [await handle.wait(120) for handle in handles] == [1] * 5
            jobs = [await handle.get() for handle in handles]
            assert [job.worker_id for job in jobs] == ["idle"] * 5
        gate.open.set()


@pytest.mark.usefixtures("impatient")
async def test_what_came_back_is_not_claimed_again_until_a_thread_is_free(
    dsn: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, "hybrid_runner")
    app = runner(dsn, thread_slots=1)
    gate = Gate(app)

    @app.job("other")
    async def other(_: Any) -> str:
        return "done"

    async with working(app, SLOTS) as worker:
        await app.enqueue("pass", {}, timeout=0.5, max_attempts=1)
        await gate.full(1)
        await until(lambda: "all 1 threads are held by sync handlers" in caplog.text)
        second = await app.enqueue("pass", {})
        released = await queued_again(app, second.id)
        for _ in range(5):  # each makes looks
            assert await (await app.enqueue(other, {})).wait(120) == "done"
        await until(lambda: worker.status().running == 0)
        assert await app.get(second.id) == released
        assert (released.attempt, released.errors) == (0, None)
        gate.open.set()
        assert await second.wait(120) == 1


@pytest.mark.usefixtures("impatient")
async def test_once_threads_are_short_no_more_is_claimed_than_can_begin(dsn: str) -> None:
    app = runner(dsn, thread_slots=2)
    gate = Gate(app)
    async with working(app, SLOTS):
        # By one insert: what came later would not be claimed once the first of them came back.
        handles = [app.handle(job.id) for job in await app.enqueue_many("pass", [{}] * 8)]
        await gate.full(2)

        async def versions() -> list[int]:
            return sorted([(await handle.get()).version for handle in handles])

        await until(versions, lambda seen: seen == [2, 2, *[3] * 6])  # six came back, once
        gate.open.set()
        assert [await handle.wait(120) for handle in handles] == [1] * 8
        assert await versions() == [3, 3, *[5] * 6]  # each was claimed once more, and ended


async def test_at_a_stop_what_waits_for_a_thread_goes_back_first_and_does_not_begin(
    dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(places_module, "PATIENCE", 60)
    app = runner(dsn, thread_slots=1, grace="2m")
    gate = Gate(app)
    async with app:
        worker: Worker = app.worker(SLOTS)
        await worker.start()
        first = await app.enqueue("pass", {})
        await gate.full(1)
        second = await app.enqueue("pass", {})
        await until(lambda: worker.status().waiting)
        stop = asyncio.create_task(worker.stop())
        released = await queued_again(app, second.id)
        assert released.attempt == 0
        assert (await first.get()).state is State.RUNNING  # it has its grace
        gate.open.set()
        await stop
        assert gate.most == 1
        assert (await second.get()).state is State.QUEUED


def registry_of(*executors: Executor) -> Registry:
    async def in_loop(_: Any) -> None: ...
    def elsewhere(_: Any) -> None: ...

    registry = Registry()
    for executor in executors:
        kind = make_kind(
            in_loop if executor == "async" else elsewhere,
            name=executor,
            queue="default",
            executor=executor,
            max_attempts=1,
            timeout=None,
            retry=RetryPolicy(),
        )
        registry.add(kind)
    return registry


@pytest.mark.parametrize(
    ("kinds", "claimed", "excluded", "most"),
    [
        (("async", "thread"), 0, (), 2),
        (("async", "thread"), 1, (), 1),
        (("async", "thread"), 2, ("thread",), math.inf),
        (("async", "thread"), 5, ("thread",), math.inf),
        (("thread",), 2, ("thread",), 0),
        (("thread",), 1, (), 1),
    ],
)
async def test_while_threads_are_short_a_look_asks_for_what_can_begin(
    monkeypatch: pytest.MonkeyPatch,
    kinds: tuple[Executor, ...],
    claimed: int,
    excluded: tuple[Executor, ...],
    most: float,
) -> None:
    monkeypatch.setattr(places_module, "PATIENCE", 0.001)
    threads = Places(2)
    said: list[str] = []
    claimable = Claimable(registry_of(*kinds), {"thread": threads})
    claimable.watch(lambda: said.append("short"), lambda: said.append("free"))
    assert (claimable.excluded(), claimable.most()) == (frozenset(), math.inf)
    await threads.take()
    await threads.take()
    for _ in range(2):
        with pytest.raises(NoPlace):
            await threads.take()
    threads.claimed = claimed + 1
    threads.leave()
    assert said == ["short", "free"]
    assert (claimable.excluded(), claimable.most()) == (frozenset(excluded), most)
    claimable.found_all(claimable.excluded())
    assert claimable.is_short is bool(excluded)
