"""E5, E7: pause, resume, trigger and reset."""

from __future__ import annotations

from datetime import timedelta

import pytest

from hybrid_runner.resilience import AdaptiveScheduler, Change
from tests.resilience.loops import Held, Noted
from tests.support.moved_clock import MovedClock, turn

# --- pause and resume


async def test_nothing_runs_while_paused(scheduler: AdaptiveScheduler, clock: MovedClock) -> None:
    """E5"""
    noted, later = Noted(clock), Noted(clock)
    scheduler.schedule("it", noted, 1)
    scheduler.pause()
    scheduler.pause()
    scheduler.schedule("later", later, 1, at_once=True)
    await clock.forward(100)
    assert (noted.at, later.at, clock.timers) == ([], [], 0)


async def test_stale_loops_run_on_resume_150_ms_apart_in_order_of_registration(
    scheduler: AdaptiveScheduler, clock: MovedClock
) -> None:
    """E5"""
    loops = {name: Noted(clock) for name in ("c", "a", "d", "b")}
    for name, noted in loops.items():
        scheduler.schedule(name, noted, 10)
    await clock.forward(10)
    scheduler.pause()
    await clock.forward(20)
    scheduler.resume()
    await clock.forward(1)
    assert {name: noted.at[1:] for name, noted in loops.items()} == {
        "c": [30],
        "a": [30.15],
        "d": [30.3],
        "b": [30.45],
    }
    await clock.forward(9.3)
    assert [noted.at[2:] for noted in loops.values()] == [[40], [40.15], [40.3], []]


async def test_what_runs_at_the_resume_keeps_nobody_waiting_for_its_turn(
    scheduler: AdaptiveScheduler, clock: MovedClock
) -> None:
    """E5"""
    held, noted = Held(clock), Noted(clock)
    scheduler.schedule("held", held, 10)
    scheduler.schedule("it", noted, 10)
    await clock.forward(10)
    scheduler.pause()
    await clock.forward(20)
    scheduler.resume()
    await clock.forward(0)
    assert (held.at, noted.at) == ([10], [10, 30])
    held.let_go()


async def test_a_loop_that_was_replaced_is_registered_last(
    scheduler: AdaptiveScheduler, clock: MovedClock
) -> None:
    """E5"""
    first, second = Noted(clock), Noted(clock)
    scheduler.schedule("first", first, 10)
    scheduler.schedule("second", second, 10)
    scheduler.schedule("first", first, 10)
    scheduler.pause()
    await clock.forward(20)
    scheduler.resume()
    await clock.forward(1)
    assert (first.at, second.at) == ([20.15], [20])


async def test_the_others_keep_their_timers_over_a_pause(
    scheduler: AdaptiveScheduler, clock: MovedClock
) -> None:
    """E5"""
    fast, slow = Noted(clock), Noted(clock)
    scheduler.schedule("slow", slow, 10)
    scheduler.schedule("fast", fast, 2)
    await clock.forward(3)
    scheduler.pause()
    await clock.forward(3)
    scheduler.resume()
    scheduler.resume()
    await clock.forward(4)
    assert (fast.at, slow.at) == ([2, 6, 8, 10], [10])


@pytest.mark.parametrize(("paused", "at"), [(19.9, [10, 30]), (20, [10, 30]), (25, [10, 35])])
async def test_stale_is_what_would_have_run_after_its_backoff(
    scheduler: AdaptiveScheduler, clock: MovedClock, paused: float, at: list[float]
) -> None:
    """E5: by the end of the last run, and with its multiplier"""
    noted = Noted(clock, False)
    scheduler.schedule("it", noted, 10)
    await clock.forward(10)
    scheduler.pause()
    await clock.forward(paused)
    scheduler.resume()
    await clock.forward(0.1)
    assert noted.at == at


async def test_stale_counts_from_the_end_of_the_last_run_and_not_from_its_beginning(
    scheduler: AdaptiveScheduler, clock: MovedClock
) -> None:
    """E5"""
    held = Held(clock)
    scheduler.schedule("held", held, 10)
    await clock.forward(10)
    scheduler.pause()
    await clock.forward(9)
    held.let_go()
    await clock.forward(9)
    scheduler.resume()
    await clock.forward(0.9)
    assert held.at == [10]
    await clock.forward(0.1)
    assert held.at == [10, 29]
    held.let_go()


async def test_a_run_goes_on_over_a_pause_and_ends_in_it(
    scheduler: AdaptiveScheduler, clock: MovedClock
) -> None:
    """E5"""
    held = Held(clock)
    scheduler.schedule("held", held, 1)
    await clock.forward(1)
    scheduler.pause()
    held.let_go()
    await clock.forward(50)
    state = scheduler.backoff_state("held")
    assert state is not None
    assert (held.at, held.running, held.cancelled, state.next_at) == ([1], 0, 0, None)
    assert state.last_ok_at is not None


async def test_a_loop_may_go_on_slower_while_paused(
    scheduler: AdaptiveScheduler, clock: MovedClock
) -> None:
    """E5"""
    noted = Noted(clock)
    scheduler.schedule("it", noted, 1, while_paused="10s")
    await clock.forward(2)
    scheduler.pause()
    await clock.forward(21)
    scheduler.resume()
    await clock.forward(2)
    assert noted.at == [1, 2, 12, 22, 23, 24, 25]


async def test_a_pause_within_the_stagger_ends_it(
    scheduler: AdaptiveScheduler, clock: MovedClock
) -> None:
    """E5"""
    loops = [Noted(clock) for _ in range(3)]
    for number, noted in enumerate(loops):
        scheduler.schedule(f"loop {number}", noted, 10)
    scheduler.pause()
    await clock.forward(20)
    scheduler.resume()
    await clock.forward(0.2)
    scheduler.pause()
    await clock.forward(5)
    assert [noted.at for noted in loops] == [[20], [20.15], []]
    scheduler.resume()
    await turn()
    await clock.forward(0)
    assert [noted.at for noted in loops] == [[20], [20.15], [25.2]]


async def test_a_second_pause_or_resume_changes_nothing_and_is_not_told(
    scheduler: AdaptiveScheduler, clock: MovedClock, changes: list[Change]
) -> None:
    """E5: loops that wait for their turn after the first resume keep it"""
    loops = [Noted(clock) for _ in range(3)]
    for number, noted in enumerate(loops):
        scheduler.schedule(f"loop {number}", noted, 10)
    scheduler.resume()
    scheduler.pause()
    scheduler.pause()
    await clock.forward(20)
    scheduler.resume()
    await clock.forward(0.05)
    scheduler.resume()
    await clock.forward(1)
    assert [noted.at for noted in loops] == [[20], [20.15], [20.3]]
    assert [change.what for change in changes[3:]] == ["paused", "resumed"]


async def test_loops_that_were_to_run_at_once_in_a_pause_take_their_turns_on_resume(
    scheduler: AdaptiveScheduler, clock: MovedClock
) -> None:
    """E5: they missed that run, and are no burst"""
    loops = [Noted(clock), Noted(clock)]
    scheduler.pause()
    for number, noted in enumerate(loops):
        scheduler.schedule(f"loop {number}", noted, 10, at_once=True)
    await clock.forward(5)
    scheduler.resume()
    await clock.forward(1)
    assert [noted.at for noted in loops] == [[5], [5.15]]


async def test_what_is_stale_is_so_by_its_interval_whatever_the_jitter_made_of_it(
    clock: MovedClock,
) -> None:
    """E5: jitter moves the timer, and not when a loop is stale"""
    noted = Noted(clock)
    async with AdaptiveScheduler(clock=clock, jitter=0.2, chance=lambda: 1.0) as scheduler:
        scheduler.schedule("it", noted, 10)
        await clock.forward(13)
        scheduler.pause()
        await clock.forward(9.5)
        scheduler.resume()
        await clock.forward(0)
    assert noted.at == [12, 22.5]


async def test_a_loop_that_goes_on_while_paused_is_never_faster_than_its_backoff(
    scheduler: AdaptiveScheduler, clock: MovedClock
) -> None:
    """E5: a pause makes slower, not faster"""
    noted = Noted(clock, False)
    scheduler.schedule("it", noted, 10, while_paused=1)
    scheduler.pause()
    await clock.forward(70)
    assert noted.at == [10, 30, 70]


async def test_the_stagger_can_be_set(clock: MovedClock) -> None:
    """E5"""
    loops = [Noted(clock), Noted(clock)]
    async with AdaptiveScheduler(clock=clock, stagger="2s") as scheduler:
        for number, noted in enumerate(loops):
            scheduler.schedule(f"loop {number}", noted, 10)
        scheduler.pause()
        await clock.forward(10)
        scheduler.resume()
        await clock.forward(3)
    assert [noted.at for noted in loops] == [[10], [12]]


# --- trigger and reset


async def test_trigger_runs_now_and_the_timer_counts_from_the_end_of_that_run(
    scheduler: AdaptiveScheduler, clock: MovedClock
) -> None:
    """E7"""
    noted = Noted(clock)
    scheduler.schedule("it", noted, 10)
    await clock.forward(4)
    assert scheduler.trigger("it")
    assert not scheduler.trigger("it"), "it runs"
    await clock.forward(10)
    assert noted.at == [4, 14]


async def test_trigger_of_an_unknown_loop_is_false(scheduler: AdaptiveScheduler) -> None:
    """E7"""
    assert not scheduler.trigger("nobody")
    assert scheduler.backoff_state("nobody") is None
    assert not scheduler.reset_backoff("nobody")


async def test_trigger_runs_while_paused_and_the_pause_goes_on(
    scheduler: AdaptiveScheduler, clock: MovedClock
) -> None:
    """E5, E7"""
    noted = Noted(clock)
    scheduler.schedule("it", noted, 1)
    scheduler.pause()
    await clock.forward(5)
    assert scheduler.trigger("it")
    await clock.forward(5)
    assert noted.at == [5]


async def test_a_reset_forgets_the_failures_and_the_next_run_is_after_one_interval(
    scheduler: AdaptiveScheduler, clock: MovedClock
) -> None:
    """E7"""
    noted = Noted(clock, False)
    scheduler.schedule("it", noted, 10)
    await clock.forward(31)
    assert scheduler.reset_backoff("it")
    state = scheduler.backoff_state("it")
    assert state is not None
    assert (state.failures, state.multiplier) == (0, 1)
    await clock.forward(9)
    assert noted.at == [10, 30, 40]


async def test_a_reset_of_what_has_not_failed_changes_nothing(
    clock: MovedClock, changes: list[Change]
) -> None:
    """E7: its timer neither"""
    noted = Noted(clock)
    async with AdaptiveScheduler(
        clock=clock, jitter=0.2, chance=lambda: 1.0, on_change=changes.append
    ) as scheduler:
        scheduler.schedule("it", noted, 10)
        before = scheduler.backoff_state("it")
        assert scheduler.reset_backoff("it")
        assert scheduler.backoff_state("it") == before
        await clock.forward(12)
    assert noted.at == [12]
    assert [change.what for change in changes] == ["scheduled", "closed"]


async def test_while_it_runs_nobody_knows_when_it_runs_next(
    scheduler: AdaptiveScheduler, clock: MovedClock
) -> None:
    """E7: that counts from its end"""
    held = Held(clock)
    scheduler.schedule("held", held, 10, at_once=True)
    await clock.forward(1)
    state = scheduler.backoff_state("held")
    assert state is not None
    assert state.next_at is None
    held.let_go()
    await turn()
    state = scheduler.backoff_state("held")
    assert state is not None
    assert state.next_at == clock.now() + timedelta(seconds=10)


async def test_a_reset_of_what_failed_long_ago_runs_it_now(
    scheduler: AdaptiveScheduler, clock: MovedClock
) -> None:
    """E7"""
    noted = Noted(clock, False)
    scheduler.schedule("it", noted, 10)
    await clock.forward(45)
    scheduler.reset_backoff("it")
    state = scheduler.backoff_state("it")
    assert state is not None
    assert state.next_at == clock.now()
    await clock.forward(0)
    assert noted.at == [10, 30, 45]
