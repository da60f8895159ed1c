"""The executor alone: attempts that are stopped at awkward moments."""

from __future__ import annotations

import asyncio
import contextvars
import time
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from hybrid_runner import Fail
from hybrid_runner.handlers.declaration import make_kind
from hybrid_runner.handlers.registry import Registry
from hybrid_runner.model.claims import Claim
from hybrid_runner.model.jobs import State
from hybrid_runner.model.outcomes import Stopped
from hybrid_runner.model.settlements import Finished, Settlement
from hybrid_runner.policy.retry import RetryPolicy
from hybrid_runner.storage.connections.lazy import LazyConnection
from hybrid_runner.telemetry.tracing.tracing import Tracing
from hybrid_runner.worker.queue.slots import Slots
from hybrid_runner.worker.run.executor import Executor
from hybrid_runner.worker.run.payloads import Payloads
from hybrid_runner.worker.run.pools import HandlerPools
from hybrid_runner.worker.run.rows import Rows
from hybrid_runner.worker.waits.taker import SignalTaker
from tests.support.quiet_port import QuietPort


def claim() -> Claim:
    """The claim of one job."""
    now = datetime.now(UTC)
    return Claim(1, "default", "hang", 5, "{}", None, None, now, 5, None, None, None, 1, 1, now)


def executing(started: asyncio.Event) -> tuple[Executor, list[Settlement]]:
    """An executor whose one handler never returns, and what it settles."""

    async def hang(payload: dict[str, Any]) -> None:
        started.set()
        await asyncio.Event().wait()

    registry, settled = Registry(), list[Settlement]()
    registry.add(
        make_kind(
            hang,
            name="hang",
            queue="default",
            executor=None,
            max_attempts=5,
            timeout=None,
            retry=RetryPolicy(),
        )
    )
    port = QuietPort()
    return Executor(
        registry,
        HandlerPools(threads=1, processes=1, port=port),
        settled.append,
        port,
        Tracing(str),
        Payloads(LazyConnection("postgresql://"), 2**20),
        Rows(lambda _: LazyConnection("postgresql://"), lambda _: None),
        SignalTaker(LazyConnection("postgresql://")),
    ), settled


async def test_an_attempt_stopped_before_it_began_is_settled_and_gives_its_slot_back() -> None:
    started, slots = asyncio.Event(), Slots(1)
    executor, settled = executing(started)
    executor.start([claim()], slots)
    assert executor.stop(1, Stopped.CANCEL)
    await asyncio.wait_for(executor.idle(), 120)
    assert [s.state for s in settled if isinstance(s, Finished)] == [State.CANCELLED]
    assert (slots.free(), started.is_set()) == (1, False)


async def test_a_cancelled_job_stays_cancelled_when_the_worker_stops_as_well() -> None:
    started, slots = asyncio.Event(), Slots(1)
    executor, settled = executing(started)
    executor.start([claim()], slots)
    await asyncio.wait_for(started.wait(), 120)
    executor.stop(1, Stopped.CANCEL)
    executor.stop_all()
    await asyncio.wait_for(executor.idle(), 120)
    assert [s.state for s in settled if isinstance(s, Finished)] == [State.CANCELLED]


@pytest.mark.parametrize("said", [None, Fail("no"), ValueError("odd"), SystemExit(3)], ids=repr)
async def test_every_end_gives_the_slot_back(said: object) -> None:
    slots, settled = Slots(1), list[Settlement]()

    async def end(payload: dict[str, Any]) -> Any:
        if isinstance(said, BaseException):
            raise said
        return said

    registry = Registry()
    registry.add(
        make_kind(
            end,
            name="hang",
            queue="default",
            executor=None,
            max_attempts=5,
            timeout=None,
            retry=RetryPolicy(),
        )
    )
    port = QuietPort()
    executor = Executor(
        registry,
        HandlerPools(threads=1, processes=1, port=port),
        settled.append,
        port,
        Tracing(str),
        Payloads(LazyConnection("postgresql://"), 2**20),
        Rows(lambda _: LazyConnection("postgresql://"), lambda _: None),
        SignalTaker(LazyConnection("postgresql://")),
    )
    executor.start([claim()], slots)
    await asyncio.wait_for(executor.idle(), 120)
    assert (len(settled), slots.free(), executor.running) == (1, 1, [])


async def test_finish_by_goes_by_the_server_s_clock() -> None:
    """The worker's own is ten minutes ahead, or behind."""
    for ahead in (timedelta(minutes=10), -timedelta(minutes=10)):
        started = asyncio.Event()
        executor, settled = executing(started)
        server_time = datetime.now(UTC) - ahead
        in_time, too_late = claim(), claim()
        too_late.id = 2
        for one, left in ((in_time, 1.5), (too_late, -1.5)):
            one.started_at, one.asked_at = server_time, time.monotonic()
            one.finish_by = server_time + timedelta(seconds=left)
        executor.start([in_time, too_late], Slots(2))
        await asyncio.wait_for(executor.idle(), 120)
        assert started.is_set()
        assert [(s.claim.id, s.state) for s in settled if isinstance(s, Finished)] == [
            (2, State.FAILED),
            (1, State.FAILED),
        ]
        said = [str(s.error) for s in settled if isinstance(s, Finished)]
        assert "passed before it could run" in said[0]
        assert "passed while it ran" in said[1]


async def test_an_attempt_that_ends_as_its_task_is_made_leaves_nothing_behind() -> None:
    """As in an event loop with eager tasks: the first ends at once, the second waits."""
    started, slots, loop = asyncio.Event(), Slots(2), asyncio.get_running_loop()
    executor, settled = executing(started)

    def make_task(
        loop: asyncio.AbstractEventLoop, work: Any, *, context: contextvars.Context
    ) -> asyncio.Task[Any]:
        if not settled:
            with pytest.raises(StopIteration):
                context.run(work.send, None)
            work = asyncio.sleep(0)
        return asyncio.Task(work, loop=loop, context=context)

    quick, slow = claim(), claim()
    quick.finish_by = quick.run_at  # it has passed: nothing is called
    slow.id = 2
    loop.set_task_factory(make_task)  # type: ignore[arg-type]  # always called with a context
    executor.start([quick, slow], slots)
    loop.set_task_factory(None)
    await asyncio.wait_for(started.wait(), 120)
    assert (executor.running, slots.taken) == ([2], 1)
    idle = asyncio.create_task(executor.idle())
    await asyncio.sleep(0)
    assert not idle.done()
    executor.stop_all()
    await asyncio.wait_for(idle, 120)
    assert ([s.claim.id for s in settled], slots.taken) == ([1, 2], 0)
