"""When the loops of an AdaptiveScheduler run."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import timedelta

import pytest

from hybrid_runner.resilience import AdaptiveScheduler, BackoffState, Change
from tests.resilience.loops import Held, Noted
from tests.support.moved_clock import MovedClock, MovedTimer, turn

LOST = OSError("no route")


async def test_each_loop_has_a_timer_of_its_own(
    scheduler: AdaptiveScheduler, clock: MovedClock
) -> None:
    """E1"""
    fast, slow = Noted(clock), Noted(clock)
    scheduler.schedule("fast", fast, "2s")
    scheduler.schedule("slow", slow, timedelta(seconds=5))
    await clock.forward(11)
    assert (fast.at, slow.at) == ([2, 4, 6, 8, 10], [5, 10])


async def test_each_loop_has_failures_of_its_own(
    scheduler: AdaptiveScheduler, clock: MovedClock
) -> None:
    """E1"""
    bad, good = Noted(clock, False), Noted(clock)
    scheduler.schedule("bad", bad, 1)
    scheduler.schedule("good", good, 1)
    await clock.forward(8)
    assert bad.at == [1, 3, 7]
    assert good.at == [1, 2, 3, 4, 5, 6, 7, 8]


async def test_the_first_run_is_after_one_interval_or_at_once(
    scheduler: AdaptiveScheduler, clock: MovedClock
) -> None:
    """E1"""
    late, early = Noted(clock), Noted(clock)
    scheduler.schedule("late", late, 3)
    scheduler.schedule("early", early, 3, at_once=True)
    await clock.forward(4)
    assert (late.at, early.at) == ([3], [0, 3])


async def test_the_interval_counts_from_the_end_of_a_run(
    scheduler: AdaptiveScheduler, clock: MovedClock
) -> None:
    """E1"""
    held = Held(clock)
    scheduler.schedule("held", held, 10)
    await clock.forward(13)
    held.let_go()
    await clock.forward(9.9)
    assert held.at == [10]
    await clock.forward(0.1)
    assert held.at == [10, 23]
    held.let_go()


@pytest.mark.parametrize(
    ("result", "is_failure"),
    [
        (False, True),
        (LOST, True),
        (TimeoutError(), True),
        (True, False),
        (None, False),
        (0, False),
        ("", False),
        ([], False),
    ],
    ids=repr,
)
@pytest.mark.parametrize("is_async", [True, False])
async def test_false_and_exceptions_are_failures_and_all_else_is_a_success(
    scheduler: AdaptiveScheduler,
    clock: MovedClock,
    result: object,
    is_failure: bool,
    is_async: bool,
) -> None:
    """E4"""
    noted = Noted(clock, result)

    async def later() -> object:
        await asyncio.sleep(0)
        return noted()

    scheduler.schedule("it", later if is_async else noted, 1)
    await clock.forward(1)
    state = scheduler.backoff_state("it")
    assert state is not None
    assert state.failures == is_failure
    assert (state.last_ok_at is None) == is_failure


async def test_failures_in_a_row_multiply_the_interval_by_2_4_and_8_and_not_more(
    scheduler: AdaptiveScheduler, clock: MovedClock
) -> None:
    """E2"""
    noted = Noted(clock, False, LOST, False)
    scheduler.schedule("it", noted, 1)
    multipliers = []
    for _ in range(6):
        seen = len(noted.at)
        while len(noted.at) == seen:
            await clock.forward(1)
        state = scheduler.backoff_state("it")
        assert state is not None
        multipliers.append(state.multiplier)
    assert noted.at == [1, 3, 7, 15, 23, 31]
    assert multipliers == [2, 4, 8, 8, 8, 8]


@pytest.mark.parametrize(
    ("factor", "cap", "at"),
    [(2, 3, [1, 3, 6, 9]), (1, 8, [1, 2, 3, 4]), (3, 1, [1, 2, 3, 4]), (1.5, 8, [1, 2.5, 4.75])],
)
async def test_factor_and_cap_can_be_set(
    clock: MovedClock, factor: float, cap: float, at: list[float]
) -> None:
    """E2"""
    noted = Noted(clock, False)
    async with AdaptiveScheduler(clock=clock, factor=factor, cap=cap) as scheduler:
        scheduler.schedule("it", noted, 1)
        await clock.forward(at[-1])
    assert noted.at == at


async def test_one_success_resets_failures_and_multiplier_and_the_next_run_is_after_one_interval(
    scheduler: AdaptiveScheduler, clock: MovedClock
) -> None:
    """E3"""
    noted = Noted(clock, False, False, False, True)
    scheduler.schedule("it", noted, 1)
    await clock.forward(15)
    assert noted.at == [1, 3, 7, 15]
    assert scheduler.backoff_state("it") == BackoffState(
        failures=0,
        multiplier=1,
        next_at=clock.now() + timedelta(seconds=1),
        last_ok_at=clock.now(),
    )
    await clock.forward(2)
    assert noted.at == [1, 3, 7, 15, 16, 17]


async def test_a_cancelled_run_is_neither_success_nor_failure(
    scheduler: AdaptiveScheduler, clock: MovedClock
) -> None:
    """E4"""
    noted = Noted(clock, False, asyncio.CancelledError(), True)
    scheduler.schedule("it", noted, 1)
    await clock.forward(3)
    state = scheduler.backoff_state("it")
    assert state is not None
    assert (state.failures, state.multiplier, state.last_ok_at) == (1, 2, None)
    await clock.forward(2)
    assert noted.at == [1, 3, 5]


async def test_a_loop_never_overlaps_itself(
    scheduler: AdaptiveScheduler, clock: MovedClock
) -> None:
    """E6"""
    held = Held(clock)
    scheduler.schedule("held", held, 1)
    await clock.forward(100)
    assert not scheduler.trigger("held")
    scheduler.pause()
    scheduler.resume()
    scheduler.reset_backoff("held")
    await clock.forward(100)
    assert (held.at, held.most) == ([1], 1)
    held.let_go()
    await clock.forward(1)
    assert (held.at, held.most) == ([1, 201], 1)
    held.let_go()


async def test_a_false_condition_skips_the_run_and_the_timer_goes_on(
    scheduler: AdaptiveScheduler, clock: MovedClock
) -> None:
    """E1, E4"""
    noted = Noted(clock, False)
    condition = Noted(clock, True, False, True)
    scheduler.schedule("it", noted, 1, condition)
    await clock.forward(3)
    state = scheduler.backoff_state("it")
    assert state is not None
    assert (state.failures, state.last_ok_at) == (1, None)
    await clock.forward(2)
    assert (condition.at, noted.at) == ([1, 3, 5], [1, 5])


async def test_a_condition_may_be_async(scheduler: AdaptiveScheduler, clock: MovedClock) -> None:
    """E1"""
    noted = Noted(clock)

    async def never() -> bool:
        return False

    scheduler.schedule("it", noted, 1, never)
    await clock.forward(5)
    assert noted.at == []


async def test_a_condition_that_raises_is_a_failure(
    scheduler: AdaptiveScheduler, clock: MovedClock
) -> None:
    """E4"""
    noted = Noted(clock)
    scheduler.schedule("it", noted, 1, Noted(clock, LOST))
    await clock.forward(1)
    state = scheduler.backoff_state("it")
    assert state is not None
    assert (state.failures, noted.at) == (1, [])


async def test_a_run_that_takes_too_long_is_cancelled_and_has_failed(
    scheduler: AdaptiveScheduler, clock: MovedClock
) -> None:
    """E4"""
    held = Held(clock)
    scheduler.schedule("held", held, 1, timeout="10s")
    await clock.forward(10.9)
    assert (held.running, held.cancelled) == (1, 0)
    await clock.forward(0.1)
    state = scheduler.backoff_state("held")
    assert state is not None
    assert (held.running, held.cancelled, state.failures) == (0, 1, 1)
    await clock.forward(2)
    assert held.at == [1, 13]
    held.let_go()


async def test_a_run_that_ends_in_the_moment_of_its_time_out_is_what_it_returned() -> None:
    """E4: it was done before anybody could cancel it"""
    loop, timers = asyncio.get_running_loop(), list[Callable[[], None]]()

    class Collected(MovedClock):
        def call_later(self, delay: timedelta, call: Callable[[], None]) -> MovedTimer:
            if delay == timedelta(seconds=7):
                timers.append(call)
            return super().call_later(delay, call)

    clock = Collected()

    async def fn() -> None:
        loop.call_soon(timers[0])  # after this turn, in which the run ends, and before the next one

    async with AdaptiveScheduler(clock=clock) as scheduler:
        scheduler.schedule("it", fn, 1, timeout=7)
        await clock.forward(1)
        state = scheduler.backoff_state("it")
    assert state is not None
    assert (state.failures, state.last_ok_at) == (0, clock.now())


async def test_a_run_that_ends_in_time_leaves_no_timer(
    scheduler: AdaptiveScheduler, clock: MovedClock
) -> None:
    """E4"""
    scheduler.schedule("it", Noted(clock), 1, timeout=100)
    await clock.forward(50)
    assert clock.timers == 1, "that of the next run"


async def test_a_run_that_goes_on_after_its_time_out_has_failed_whatever_it_returns(
    scheduler: AdaptiveScheduler, clock: MovedClock, changes: list[Change]
) -> None:
    """E4, E6"""
    held = Held(clock, stubborn=True)
    scheduler.schedule("held", held, 1, timeout=1)
    await clock.forward(60)
    assert (held.at, held.cancelled) == ([1], 1)
    assert [change.what for change in changes] == ["scheduled", "stop_ignored"]
    held.let_go()
    await turn()
    state = scheduler.backoff_state("held")
    assert state is not None
    assert (state.failures, state.last_ok_at) == (1, None)


@pytest.mark.parametrize(
    ("chance", "at"), [(0.0, [8, 16]), (0.5, [10, 20]), (1.0, [12, 24]), (0.75, [11, 22])]
)
@pytest.mark.parametrize("is_of_all", [True, False])
async def test_jitter_makes_pauses_longer_or_shorter(
    clock: MovedClock, chance: float, at: list[float], is_of_all: bool
) -> None:
    """E8"""
    noted = Noted(clock)
    of_all, own = (0.2, None) if is_of_all else (0.0, 0.2)
    async with AdaptiveScheduler(clock=clock, jitter=of_all, chance=lambda: chance) as scheduler:
        scheduler.schedule("it", noted, 10, jitter=own)
        await clock.forward(24)
    assert noted.at[:2] == at


async def test_a_loops_own_jitter_of_zero_takes_it_out(clock: MovedClock) -> None:
    """E8"""
    noted = Noted(clock)
    async with AdaptiveScheduler(clock=clock, jitter=0.2, chance=lambda: 1.0) as scheduler:
        scheduler.schedule("it", noted, 10, jitter=0)
        await clock.forward(20)
    assert noted.at == [10, 20]
