"""E7: the end of all loops."""

from __future__ import annotations

import asyncio
import gc
from contextlib import suppress
from datetime import timedelta

import pytest

from hybrid_runner import ConfigurationError
from hybrid_runner.resilience import AdaptiveScheduler, Change
from tests.resilience.loops import Held, Noted
from tests.support.moved_clock import MovedClock, turn


async def test_close_ends_all_loops_and_can_be_repeated(clock: MovedClock) -> None:
    """E7"""
    noted, told = Noted(clock), list[Change]()
    scheduler = AdaptiveScheduler(clock=clock, on_change=told.append)
    scheduler.schedule("it", noted, 1)
    await asyncio.gather(scheduler.close(), scheduler.close())
    await scheduler.close()
    await clock.forward(10)
    assert [change.what for change in told] == ["scheduled", "closed"]
    assert (noted.at, clock.timers, scheduler.trigger("it")) == ([], 0, False)
    state = scheduler.backoff_state("it")
    assert state is not None
    assert state.next_at is None
    with pytest.raises(ConfigurationError, match="is closed: make another one"):
        scheduler.schedule("it", noted, 1)


async def test_what_runs_has_the_grace_to_end(clock: MovedClock) -> None:
    """E7"""
    held = Held(clock)
    scheduler = AdaptiveScheduler(clock=clock)
    scheduler.schedule("held", held, 1, at_once=True)
    await clock.forward(0)
    closing = asyncio.create_task(scheduler.close())
    await clock.forward(4)
    assert (closing.done(), held.running) == (False, 1)
    held.let_go()
    await closing
    assert (held.cancelled, clock.seconds, clock.timers) == (0, 4, 0)


async def test_what_runs_is_cancelled_after_the_grace(clock: MovedClock) -> None:
    """E7"""
    held = Held(clock)
    scheduler = AdaptiveScheduler(clock=clock)
    scheduler.schedule("held", held, 1, at_once=True)
    await clock.forward(0)
    closing = asyncio.create_task(scheduler.close("2s"))
    await clock.forward(1.9)
    assert held.cancelled == 0
    await clock.forward(0.1)
    await closing
    assert (held.cancelled, held.running) == (1, 0)


async def test_what_ignores_its_cancellation_does_not_hold_up_the_close(
    clock: MovedClock, caplog: pytest.LogCaptureFixture
) -> None:
    """E7"""
    held = Held(clock, stubborn=True)
    scheduler = AdaptiveScheduler(clock=clock)
    scheduler.schedule("held", held, 1, at_once=True)
    await clock.forward(0)
    closing = asyncio.create_task(scheduler.close(0))
    await clock.forward(2)
    await closing
    assert (held.cancelled, held.running) == (1, 1)
    assert [record.message for record in caplog.records if "held" in record.message] == [
        "held was cancelled and goes on all the same: it is not run again before it has ended"
    ]
    await scheduler.close()
    held.let_go()
    await turn()
    assert held.running == 0


async def test_what_was_left_behind_may_fail_later_and_nobody_is_told(
    clock: MovedClock, caplog: pytest.LogCaptureFixture
) -> None:
    """E7: asyncio says nothing of an exception that nobody has asked for"""
    go_on = asyncio.Event()

    async def stubborn() -> None:
        while not go_on.is_set():
            with suppress(asyncio.CancelledError):
                await go_on.wait()
        raise OSError("late")

    scheduler = AdaptiveScheduler(clock=clock)
    scheduler.schedule("it", stubborn, 1, at_once=True)
    await clock.forward(0)
    closing = asyncio.create_task(scheduler.close(0))
    await clock.forward(1)
    await closing
    caplog.clear()
    go_on.set()
    await turn()
    gc.collect()
    assert caplog.records == []


async def test_what_is_cancelled_has_a_second_to_put_its_things_in_order(
    clock: MovedClock, caplog: pytest.LogCaptureFixture
) -> None:
    """E7"""
    tidied, order = asyncio.Event(), list[str]()

    async def fn() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            clock.call_later(timedelta(seconds=0.9), tidied.set)
            await tidied.wait()
            order.append("tidied")

    async def close() -> None:
        await scheduler.close(0)
        order.append("closed")

    scheduler = AdaptiveScheduler(clock=clock)
    scheduler.schedule("it", fn, 1, at_once=True)
    await clock.forward(0)
    closing = asyncio.create_task(close())
    await clock.forward(1)
    await closing
    assert order == ["tidied", "closed"]
    assert "goes on all the same" not in caplog.text


async def test_a_close_that_is_cancelled_cancels_what_runs(clock: MovedClock) -> None:
    """E7"""
    held = Held(clock)
    scheduler = AdaptiveScheduler(clock=clock)
    scheduler.schedule("held", held, 1, at_once=True)
    await clock.forward(0)
    closing = asyncio.create_task(scheduler.close())
    await turn()
    closing.cancel()
    await asyncio.wait([closing])
    await turn()
    assert (closing.cancelled(), held.cancelled, held.running) == (True, 1, 0)


async def test_a_loop_may_close_its_scheduler(clock: MovedClock) -> None:
    """E7: its own run does not wait for itself"""
    scheduler = AdaptiveScheduler(clock=clock)
    closed = asyncio.Event()

    async def close() -> None:
        await scheduler.close()
        closed.set()

    scheduler.schedule("it", close, 1, at_once=True)
    await clock.forward(0)
    assert closed.is_set()
    assert not scheduler.trigger("it")


async def test_leaving_the_block_closes(clock: MovedClock) -> None:
    """E7"""
    async with AdaptiveScheduler(clock=clock) as scheduler:
        scheduler.schedule("it", Noted(clock), 1)
    assert clock.timers == 0
