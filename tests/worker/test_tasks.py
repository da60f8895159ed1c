"""The background tasks of a worker."""

from __future__ import annotations

import asyncio
from contextvars import ContextVar
from datetime import timedelta
from functools import partial

import pytest

from hybrid_runner.resilience import AdaptiveScheduler
from hybrid_runner.worker import tasks as module
from hybrid_runner.worker.tasks import Tasks
from tests.support.moved_clock import MovedClock

SOON = timedelta(milliseconds=1)


async def test_what_is_called_again_and_again_goes_on_after_a_failure_and_a_cancellation() -> None:
    """A handler may cancel all tasks; a heartbeat that failed is due again as soon as ever."""
    tasks, calls, often = Tasks(lambda: "one"), list[str](), asyncio.Event()

    async def call() -> None:
        calls.append("call")
        if len(calls) == 1:
            raise OSError("lost")
        if len(calls) == 2:
            current = asyncio.current_task()
            assert current is not None
            current.cancel()
            await asyncio.Event().wait()
        often.set()

    tasks.every("it", SOON, call)
    await often.wait()
    await tasks.end("")
    assert len(calls) >= 3


async def test_what_is_called_again_and_again_is_not_called_less_often_while_it_fails(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """E2: a lease does not wait for eight intervals; the backoff is taken out of these loops."""
    clock = MovedClock()
    monkeypatch.setattr(module, "AdaptiveScheduler", partial(AdaptiveScheduler, clock=clock))
    tasks, calls = Tasks(lambda: "one"), list[float]()

    def call() -> bool:
        calls.append(clock.seconds)
        raise OSError("lost")

    tasks.every("it", timedelta(seconds=1), call)
    await clock.forward(6)
    await tasks.end("")
    assert calls == [1, 2, 3, 4, 5, 6]


async def test_what_is_called_again_and_again_knows_nothing_of_whoever_asked_for_it() -> None:
    """A trace that was current when the worker started would have all its heartbeats."""
    variable = ContextVar("variable", default="nothing")
    tasks, seen, called = Tasks(lambda: "one"), list[str](), asyncio.Event()

    def call() -> None:
        seen.append(variable.get())
        called.set()

    variable.set("a request")
    tasks.every("it", SOON, call)
    await called.wait()
    await tasks.end("")
    assert seen[0] == "nothing"


async def test_the_end_waits_for_nothing_that_is_called_again_and_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What a worker may wait for at its stop has a grace of its own."""
    clock = MovedClock()
    monkeypatch.setattr(module, "AdaptiveScheduler", partial(AdaptiveScheduler, clock=clock))
    tasks, cancelled = Tasks(lambda: "one"), asyncio.Event()

    async def call() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()

    tasks.every("it", timedelta(seconds=1), call)
    await clock.forward(1)
    ending = asyncio.create_task(tasks.end(""))
    await clock.forward(0)
    assert cancelled.is_set()
    await clock.forward(2)
    await ending


async def test_nothing_is_called_again_after_the_end() -> None:
    tasks, called, cancelled = Tasks(lambda: "one"), asyncio.Event(), asyncio.Event()

    async def call() -> None:
        called.set()
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()

    tasks.every("it", SOON, call)
    await called.wait()
    await tasks.end("claimer")
    assert not cancelled.is_set(), "only some were ended"
    await tasks.end("")
    assert cancelled.is_set()
