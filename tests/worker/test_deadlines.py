"""Time-outs: the heap of them alone, and what becomes of handlers that answer to theirs in odd
ways.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from hybrid_runner.handlers.declaration import make_kind
from hybrid_runner.handlers.job import Job
from hybrid_runner.handlers.registry import Registry
from hybrid_runner.model.claims import Claim
from hybrid_runner.model.jobs import State
from hybrid_runner.model.outcomes import Stopped
from hybrid_runner.model.settlements import Finished, Requeued, Settlement
from hybrid_runner.policy.retry import RetryPolicy
from hybrid_runner.storage.connections.lazy import LazyConnection
from hybrid_runner.telemetry.tracing.tracing import Tracing
from hybrid_runner.worker.queue.slots import Slots
from hybrid_runner.worker.run.deadlines import Deadlines
from hybrid_runner.worker.run.executor import Executor
from hybrid_runner.worker.run.payloads import Payloads
from hybrid_runner.worker.run.pools import HandlerPools
from hybrid_runner.worker.run.rows import Rows
from hybrid_runner.worker.waits.taker import SignalTaker
from tests.support import inside
from tests.support.quiet_port import QuietPort

HOUR = 3600.0
SHORT = timedelta(milliseconds=20)


class Timed:
    """Something with a time-out; `then` is done when it expires."""

    def __init__(
        self, name: str, expired: list[str], then: Callable[[], None] = lambda: None
    ) -> None:
        self.ended = False
        self.name = name
        self.rang = asyncio.Event()
        self._expired = expired
        self._then = then

    def expire(self) -> None:
        self._expired.append(self.name)
        self.rang.set()
        self._then()


@pytest.fixture
async def deadlines() -> AsyncIterator[Deadlines]:
    deadlines = Deadlines()
    yield deadlines
    deadlines.close()


def end(deadlines: Deadlines, timed: Timed) -> None:
    """End an attempt before its time-out."""
    timed.ended = True
    deadlines.ended()


async def rung(timed: Timed) -> None:
    """Wait until it has expired."""
    await asyncio.wait_for(timed.rang.wait(), 120)


async def test_they_expire_in_the_order_of_their_times(
    deadlines: Deadlines, monkeypatch: pytest.MonkeyPatch
) -> None:
    expired = list[str]()
    timed = {name: Timed(name, expired) for name in ("third", "first", "fourth", "second")}
    loop = asyncio.get_running_loop()
    now = loop.time()
    with monkeypatch.context() as patch:
        patch.setattr(loop, "time", lambda: now)  # all are added at one moment
        for name, seconds in zip(timed, (0.003, 0.001, 0.004, 0.002), strict=True):
            deadlines.add(seconds, timed[name])
    await rung(timed["fourth"])
    assert expired == ["first", "second", "third", "fourth"]


async def test_a_shorter_one_that_came_later_rings_first(deadlines: Deadlines) -> None:
    expired = list[str]()
    deadlines.add(HOUR, Timed("long", expired))
    short = Timed("short", expired)
    deadlines.add(0.001, short)
    await rung(short)
    longer = Timed("longer", expired)
    deadlines.add(0.002, longer)  # the alarm for the long one is set again, and moved again
    await rung(longer)
    assert expired == ["short", "longer"]


async def test_one_that_has_ended_never_expires(deadlines: Deadlines) -> None:
    expired = list[str]()
    quick, last = Timed("quick", expired), Timed("last", expired)
    deadlines.add(0.001, quick)
    deadlines.add(0.002, last)
    end(deadlines, quick)
    await rung(last)
    assert expired == ["last"]


async def test_one_that_ends_while_another_expires_does_not_expire_after_it(
    deadlines: Deadlines,
) -> None:
    expired = list[str]()
    second, last = Timed("second", expired), Timed("last", expired)
    first = Timed("first", expired, then=lambda: end(deadlines, second))
    for timed in (first, second, last):
        deadlines.add(0, timed)  # one alarm rings for all three
    await rung(last)
    assert expired == ["first", "last"]


async def test_one_that_is_added_while_another_expires_expires_too(deadlines: Deadlines) -> None:
    expired = list[str]()
    child = Timed("child", expired)
    deadlines.add(0, Timed("parent", expired, then=lambda: deadlines.add(0.001, child)))
    await rung(child)
    assert expired == ["parent", "child"]


async def test_after_closing_nothing_expires(deadlines: Deadlines) -> None:
    expired = list[str]()
    deadlines.add(0.001, Timed("closed", expired))
    deadlines.close()
    other, later = Deadlines(), Timed("later", expired)
    other.add(0.002, later)
    await rung(later)
    assert expired == ["later"]


async def test_attempts_that_end_long_before_their_time_outs_keep_no_memory(
    deadlines: Deadlines,
) -> None:

    expired = list[str]()
    most = 0
    for number in range(100_000):
        timed = Timed(str(number), expired)
        deadlines.add(HOUR, timed)
        end(deadlines, timed)
        most = max(most, inside.remembered(deadlines))
    assert most < 100
    assert expired == []


async def test_many_that_run_at_once_leave_no_memory_behind(deadlines: Deadlines) -> None:
    crowd = [Timed("one of many", []) for _ in range(10_000)]
    for timed in crowd:
        deadlines.add(HOUR, timed)
    for number, timed in enumerate(crowd, 1):
        end(deadlines, timed)
        assert inside.remembered(deadlines) <= 2 * (len(crowd) - number) + 100


async def test_those_that_still_run_outlive_the_throwing_out(deadlines: Deadlines) -> None:
    expired = list[str]()
    last = Timed("last", expired)
    deadlines.add(0.05, last)
    for number in range(1_000):
        timed = Timed(str(number), expired)
        deadlines.add(0.001, timed)
        end(deadlines, timed)
    await rung(last)
    assert expired == ["last"]


# --- what the executor makes of them

Handler = Callable[..., Coroutine[Any, Any, Any]]


class Running:
    """An executor that runs one job, with a time-out, and what it settled."""

    def __init__(self, handler: Handler, *, timeout: timedelta = SHORT) -> None:
        registry, self.settled, self.slots = Registry(), list[Settlement](), Slots(1)
        registry.add(
            make_kind(
                handler,
                name="odd",
                queue="default",
                executor=None,
                max_attempts=5,
                timeout=None,
                retry=RetryPolicy(),
            )
        )
        port = QuietPort()
        self.executor = Executor(
            registry,
            HandlerPools(threads=1, processes=1, port=port),
            self.settled.append,
            port,
            Tracing(str),
            Payloads(LazyConnection("postgresql://"), 2**20),
            Rows(lambda _: LazyConnection("postgresql://"), lambda _: None),
            SignalTaker(LazyConnection("postgresql://")),
        )
        now = datetime.now(UTC)
        claim = Claim(
            1,
            "default",
            "odd",
            5,
            "{}",
            None,
            None,
            now,
            5,
            timeout.total_seconds(),
            None,
            None,
            1,
            1,
            now,
        )
        self.executor.start([claim], self.slots)

    async def end(self) -> Settlement:
        """How the job ended."""
        await asyncio.wait_for(self.executor.idle(), 120)
        await self.executor.close()
        assert (self.slots.free(), self.executor.running) == (1, [])
        [settlement] = self.settled
        return settlement


async def forever() -> None:
    """Until cancelled."""
    await asyncio.Event().wait()


async def test_a_handler_that_swallows_its_time_out_and_returns_has_completed() -> None:
    async def swallow(payload: dict[str, Any]) -> str:
        try:
            await forever()
        except asyncio.CancelledError:
            return "what there was"
        return "never"

    settlement = await Running(swallow).end()
    assert isinstance(settlement, Finished)
    assert (settlement.state, settlement.result, settlement.error) == (
        State.COMPLETED,
        '"what there was"',
        None,
    )


async def test_a_handler_can_go_on_after_it_swallowed_its_time_out() -> None:
    async def tidy(payload: dict[str, Any]) -> str:
        try:
            await forever()
        except asyncio.CancelledError:
            await asyncio.sleep(0)
            async with (
                asyncio.timeout(120),
                asyncio.TaskGroup() as group,
            ):  # what counts cancellations is not confused
                group.create_task(asyncio.sleep(0))
        return "tidied up"

    settlement = await Running(tidy).end()
    assert isinstance(settlement, Finished)
    assert (settlement.state, settlement.result) == (State.COMPLETED, '"tidied up"')


async def test_a_handler_can_see_that_it_is_told_to_stop() -> None:
    seen = list[bool]()

    async def look(payload: dict[str, Any], job: Job) -> None:
        seen.append(job.cancel_requested)
        try:
            await forever()
        finally:
            seen.append(job.cancel_requested)

    await Running(look).end()
    assert seen == [False, True]


async def test_an_attempt_out_of_time_is_charged_and_comes_back() -> None:
    async def hang(payload: dict[str, Any]) -> None:
        await forever()

    settlement = await Running(hang).end()
    assert isinstance(settlement, Requeued)
    assert settlement.charged
    assert "ran longer than its time-out of 0.02 s" in (settlement.error or "")


@pytest.mark.parametrize(
    ("why", "state"),
    [(Stopped.CANCEL, State.CANCELLED), (Stopped.SHUTDOWN, None)],
    ids=["cancel", "shutdown"],
)
async def test_a_job_that_runs_out_of_time_while_it_is_being_stopped_was_stopped(
    why: Stopped, state: State | None
) -> None:
    stopped, cleaning = list[bool](), asyncio.Event()

    def stop() -> None:
        stopped.append(running.executor.stop(1, why))

    async def clean_up_for_long(payload: dict[str, Any]) -> None:
        try:
            asyncio.get_running_loop().call_soon(stop)  # before any alarm can ring
            await forever()
        finally:
            cleaning.set()
            await forever()  # only the time-out ends this

    running = Running(clean_up_for_long, timeout=timedelta(milliseconds=200))
    settlement = await running.end()
    assert stopped == [True]
    assert cleaning.is_set()
    if state is None:
        assert isinstance(settlement, Requeued)
        assert not settlement.charged
    else:
        assert isinstance(settlement, Finished)
        assert settlement.state is state


async def test_a_job_that_is_cancelled_while_it_cleans_up_after_its_time_out_is_cancelled() -> None:
    cleaning = asyncio.Event()

    async def clean_up_for_long(payload: dict[str, Any]) -> None:
        try:
            await forever()
        finally:
            cleaning.set()
            await forever()

    running = Running(clean_up_for_long)
    await asyncio.wait_for(cleaning.wait(), 120)
    assert running.executor.stop(1, Stopped.CANCEL)
    settlement = await running.end()
    assert isinstance(settlement, Finished)
    assert settlement.state is State.CANCELLED


@pytest.mark.parametrize(
    "error", [TimeoutError("the other side was slow"), ValueError("while cleaning up")], ids=repr
)
async def test_what_a_handler_raises_at_its_time_out_is_its_own_error(error: Exception) -> None:
    async def raise_it(payload: dict[str, Any]) -> None:
        try:
            await forever()
        except asyncio.CancelledError:
            raise error from None

    settlement = await Running(raise_it).end()
    assert isinstance(settlement, Requeued)
    assert str(error) in (settlement.error or "")
    assert "ran longer" not in (settlement.error or "")


async def test_a_shorter_time_out_of_the_handlers_own_is_no_time_out_of_the_job() -> None:
    async def ask(payload: dict[str, Any]) -> str:
        try:
            async with asyncio.timeout(0.001):
                await forever()
        except TimeoutError:
            return "no answer"
        return "never"

    settlement = await Running(ask, timeout=timedelta(hours=1)).end()
    assert isinstance(settlement, Finished)
    assert settlement.result == '"no answer"'


async def test_an_attempt_that_ends_in_time_leaves_no_time_out_behind() -> None:
    async def quick(payload: dict[str, Any]) -> None:
        pass

    running = Running(quick, timeout=timedelta(hours=1))
    settlement = await running.end()
    assert isinstance(settlement, Finished)
    assert inside.awaits_no_time_out(running.executor)
