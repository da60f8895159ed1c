"""C3, C4: when something that is looked at again and again is due."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from hybrid_runner import ConfigurationError
from hybrid_runner.resilience import Backoff, Breaker, BreakerState, DueTimes

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
CLOSED = BreakerState()


def after(seconds: float) -> datetime:
    return NOON + timedelta(seconds=seconds)


def test_after_a_success_it_is_due_after_the_interval() -> None:
    """C4"""
    assert DueTimes("30s").next_due(NOON, CLOSED) == after(30)


@pytest.mark.parametrize(
    ("interval", "pauses"),
    [
        (1, [1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300]),
        (30, [30, 30, 30, 30, 30, 32, 64, 128, 256, 300, 300]),
        (3600, [3600] * 11),
    ],
)
def test_after_failures_it_is_due_after_the_backoff_where_that_is_longer(
    interval: float, pauses: list[float]
) -> None:
    """C3, C4: 1 s, doubling, 300 s at most"""
    due = [
        (DueTimes(interval).next_due(NOON, BreakerState("closed", failures)) - NOON).total_seconds()
        for failures in range(1, 12)
    ]
    assert due == pauses


def test_a_success_resets_the_backoff() -> None:
    """C3"""
    breaker, due_times, state = Breaker(failures=100), DueTimes(1), BreakerState()
    for _ in range(8):
        state = breaker.after(state, False, NOON)
    assert due_times.next_due(NOON, state) == after(128)
    state = breaker.after(state, True, NOON)
    assert due_times.next_due(NOON, state) == after(1)


@pytest.mark.parametrize(("seconds", "due"), [(0, 300), (5, 300), (299, 300), (300, 300), (9, 300)])
def test_while_open_it_is_due_when_the_rest_of_the_cooldown_is_over(
    seconds: float, due: float
) -> None:
    """C4"""
    state = BreakerState("open", 10, NOON)
    assert DueTimes("30s").next_due(after(seconds), state) == after(due)
    assert DueTimes("30s").next_due(after(301), state) == after(301), "that was over"


def test_asking_at_each_tick_while_open_does_not_put_it_off() -> None:
    """C4: a cool-down of 300 s that was really 595, since each tick renewed the due time"""
    breaker, due_times = Breaker(failures=10, cooldown="300s"), DueTimes("30s", cooldown="300s")
    state, now, due = BreakerState("open", 10, NOON), 0, NOON
    calls = list[int]()
    while not calls:
        now += 5
        state, may = breaker.before(state, after(now))
        if may:
            calls.append(now)
        due = due_times.next_due(after(now), state)
    assert calls == [300]
    assert due == after(600), "if the probe is lost"


def test_as_a_tick_that_asks_the_due_time_first_would_have_it() -> None:
    """C4: whichever is asked first, the probe goes after 300 s"""
    breaker, due_times = Breaker(failures=10, cooldown="300s"), DueTimes("30s", cooldown="300s")
    state = BreakerState("open", 10, NOON)
    due, looked = due_times.next_due(NOON, state), []
    for now in range(5, 900, 5):
        if after(now) < due:
            continue
        state, may = breaker.before(state, after(now))
        if may:
            looked.append(now)
            state = breaker.after(state, False, after(now))
        due = due_times.next_due(after(now), state)
    assert looked == [300, 600]


def test_a_changed_address_is_due_at_once_whatever_the_breaker_says() -> None:
    """C4"""
    for state in (CLOSED, BreakerState("closed", 9), BreakerState("open", 10, NOON)):
        assert DueTimes().next_due(after(7), state, address_changed=True) == after(7)


def test_the_backoff_may_spread_by_chance() -> None:
    """C3"""
    due_times = DueTimes(1, Backoff("10s", cap="5m", jitter=0.2))
    state = BreakerState("closed", 1)
    due = [due_times.next_due(NOON, state, chance=chance) for chance in (0.0, 0.5, 1.0)]
    assert due == [after(8), after(10), after(12)]


@pytest.mark.parametrize("seed", range(50))
def test_it_is_never_due_before_now_nor_later_than_the_longest_of_its_times(seed: int) -> None:
    """C4: random states at random times, also from a clock that was ahead"""
    chance = random.Random(seed)
    interval, cooldown = chance.choice([5, 30, 3600]), chance.choice([1, 300])
    due_times = DueTimes(interval, cooldown=cooldown)
    for _ in range(300):
        mode = chance.choice(["closed", "open", "half_open"])
        at = chance.choice([None, after(chance.uniform(-1000, 1000))])
        state = BreakerState(mode, chance.randint(0, 10**9), at)  # type: ignore[arg-type]
        now = after(chance.uniform(-1000, 1000))
        due = due_times.next_due(now, state, chance=chance.random())
        assert now <= due <= now + timedelta(seconds=max(interval, cooldown, 300))
        later = now + (due - now) * chance.random()
        if mode != "closed" and at is not None and at <= now:
            assert due_times.next_due(later, state) == due


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"interval": 0}, "interval of DueTimes must be more than zero"),
        ({"interval": "x"}, "interval of DueTimes: 'x' is not a duration"),
        ({"cooldown": -1}, "cooldown of DueTimes must be more than zero"),
        ({"backoff": "1s"}, "backoff of DueTimes must be a Backoff, not '1s'"),
    ],
)
def test_due_times_that_cannot_be_are_refused_in_one_line(
    arguments: dict[str, Any], said: str
) -> None:
    """C4"""
    with pytest.raises(ConfigurationError, match=f"^{said}"):
        DueTimes(**arguments)
