"""In an event loop with eager tasks, which run as they are made as far as they get."""

from __future__ import annotations

import asyncio
import contextvars
import types
from collections.abc import Coroutine, Generator, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from hybrid_runner import RunnerError
from hybrid_runner.resilience import AdaptiveScheduler, Coalescing
from tests.resilience.loops import Held
from tests.support.moved_clock import MovedClock, turn


@types.coroutine
def _steps_of(work: Coroutine[Any, Any, Any], waits_for: Any) -> Generator[Any, Any, Any]:
    """Go on with a coroutine that waits for something already."""
    failure: BaseException | None
    while True:
        try:
            said, failure = (yield waits_for), None
        except BaseException as error:
            said, failure = None, error
        try:
            waits_for = work.send(said) if failure is None else work.throw(failure)
        except StopIteration as end:
            return end.value


async def rest_of(work: Coroutine[Any, Any, Any], waits_for: Any) -> Any:
    return await _steps_of(work, waits_for)


async def given(value: Any) -> Any:
    return value


def make_task(loop: asyncio.AbstractEventLoop, work: Any, **options: Any) -> asyncio.Future[Any]:
    """As asyncio.eager_task_factory, which Python 3.11 has not."""
    context = options.get("context") or contextvars.copy_context()
    try:
        work = rest_of(work, context.run(work.send, None))
    except StopIteration as end:
        work = given(end.value)
    return asyncio.Task(work, loop=loop, **options)


@contextmanager
def eager() -> Iterator[None]:
    """Within the test: pytest makes tasks for tests and fixtures before the loop runs."""
    loop = asyncio.get_running_loop()
    loop.set_task_factory(make_task)
    try:
        yield
    finally:
        loop.set_task_factory(None)


async def test_tasks_are_eager_here() -> None:
    called = []

    async def call() -> str:
        called.append("before")
        await asyncio.sleep(0)
        return "result"

    with eager():
        task = asyncio.create_task(call())
        assert called == ["before"]
        assert await task == "result"


async def test_a_loop_that_triggers_or_replaces_itself_does_not_overlap_itself(
    clock: MovedClock, scheduler: AdaptiveScheduler
) -> None:
    """E6: it runs, from its first line on"""
    held, triggered = Held(clock), list[bool]()

    def schedule() -> None:
        scheduler.schedule("it", fn, 10, at_once=True)

    async def fn() -> object:
        triggered.append(scheduler.trigger("it"))
        if len(triggered) == 1:
            schedule()
        return await held()

    with eager():
        schedule()
        await clock.forward(5)
        assert (triggered, held.at, held.most) == ([False], [0], 1)
        held.let_go()
        await clock.forward(0)
    assert (triggered, held.at, held.most) == ([False, False], [0, 5], 1)
    held.let_go()
    await turn()


async def test_a_call_that_would_wait_for_itself_is_refused_in_its_first_line() -> None:
    """C6"""
    coalescing = Coalescing()

    async def again() -> None:
        await coalescing.run("k", again)

    with eager(), pytest.raises(RunnerError, match="the call for 'k' waits for itself"):
        await coalescing.run("k", again)
