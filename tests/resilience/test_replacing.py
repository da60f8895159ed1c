"""E1, E6: the same name again."""

from __future__ import annotations

from hybrid_runner.resilience import AdaptiveScheduler, BackoffState, Change
from tests.resilience.loops import Held, Noted
from tests.support.moved_clock import MovedClock, turn


async def test_the_same_name_again_replaces_the_loop(
    scheduler: AdaptiveScheduler, clock: MovedClock
) -> None:
    """E1"""
    old, new = Noted(clock, False), Noted(clock)
    scheduler.schedule("it", old, 1)
    await clock.forward(2)
    scheduler.schedule("it", new, 2)
    assert scheduler.backoff_state("it") == BackoffState(
        0, 1, clock.now().replace(second=4), last_ok_at=None
    )
    await clock.forward(4)
    assert (old.at, new.at) == ([1], [4, 6])


async def test_the_outcome_of_a_run_that_was_replaced_is_not_the_new_loops(
    scheduler: AdaptiveScheduler, clock: MovedClock, changes: list[Change]
) -> None:
    """E1"""
    held, new = Held(clock), Noted(clock)
    held.result = False
    scheduler.schedule("it", held, 1)
    await clock.forward(1)
    scheduler.schedule("it", new, 10)
    held.let_go()
    await turn()
    state = scheduler.backoff_state("it")
    assert state is not None
    assert (state.failures, state.last_ok_at) == (0, None)
    assert [change.what for change in changes] == ["scheduled", "scheduled"]
    await clock.forward(10)
    assert new.at == [11]


async def test_a_new_loop_does_not_overlap_the_run_of_the_one_it_replaces(
    scheduler: AdaptiveScheduler, clock: MovedClock
) -> None:
    """E6"""
    held, new = Held(clock), Noted(clock)
    scheduler.schedule("it", held, 1)
    await clock.forward(1)
    scheduler.schedule("it", new, 1, at_once=True)
    await clock.forward(10)
    assert not scheduler.trigger("it")
    assert new.at == []
    held.let_go()
    await clock.forward(1)
    assert new.at == [11, 12]


async def test_whoever_is_told_of_a_failure_may_replace_the_loop(clock: MovedClock) -> None:
    """E1"""
    old, new = Noted(clock, False), Noted(clock)

    def replace(change: Change) -> None:
        if change.what == "failing":
            scheduler.schedule("it", new, 3)

    async with AdaptiveScheduler(clock=clock, on_change=replace) as scheduler:
        scheduler.schedule("it", old, 1)
        await clock.forward(7)
    assert (old.at, new.at) == ([1], [4, 7])


async def test_a_loop_may_replace_itself_from_within(
    scheduler: AdaptiveScheduler, clock: MovedClock
) -> None:
    """E1"""
    new = Noted(clock)

    def replace() -> bool:
        scheduler.schedule("it", new, 5)
        return False

    scheduler.schedule("it", replace, 1)
    await clock.forward(11)
    assert new.at == [6, 11]
    state = scheduler.backoff_state("it")
    assert state is not None
    assert state.failures == 0
