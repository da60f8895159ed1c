"""C2: when calls are no longer made, and when one is tried again."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from hybrid_runner import ConfigurationError
from hybrid_runner.resilience import Breaker, BreakerState

BREAKER = Breaker(failures=10, cooldown="5m")
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def after(seconds: float) -> datetime:
    return NOON + timedelta(seconds=seconds)


def opened(failures: int = 10, at: datetime = NOON) -> BreakerState:
    return BreakerState("open", failures, at)


def test_ten_failures_in_a_row_open_it_and_nine_do_not() -> None:
    """C2"""
    state = BreakerState()
    for number in range(1, 11):
        state = BREAKER.after(state, False, after(number))
        is_open = number == 10
        assert state == BreakerState(
            "open" if is_open else "closed", number, after(number) if is_open else None
        )


def test_a_success_in_between_counts_from_zero() -> None:
    """C2"""
    state = BreakerState("closed", 9)
    state = BREAKER.after(state, True, NOON)
    assert state == BreakerState()
    assert BREAKER.after(state, False, NOON) == BreakerState("closed", 1)


@pytest.mark.parametrize(
    ("state", "seconds", "expected"),
    [
        (BreakerState("closed", 9), 0, (BreakerState("closed", 9), True)),
        (opened(), 0, (opened(), False)),
        (opened(), 299.999, (opened(), False)),
        (opened(), 300, (BreakerState("half_open", 10, after(300)), True)),
        (opened(), 86400, (BreakerState("half_open", 10, after(86400)), True)),
    ],
)
def test_calls_go_unless_it_is_open_and_one_goes_after_the_cooldown(
    state: BreakerState, seconds: float, expected: tuple[BreakerState, bool]
) -> None:
    """C2"""
    assert BREAKER.before(state, after(seconds)) == expected


def test_half_open_lets_exactly_one_probe_through() -> None:
    """C2"""
    state, first = BREAKER.before(opened(), after(300))
    answers = []
    for second in range(301, 600):
        state, may = BREAKER.before(state, after(second))
        answers.append(may)
    assert first
    assert not any(answers)


def test_a_probe_that_was_lost_blocks_for_one_cooldown_and_not_for_ever() -> None:
    """C2: its process died"""
    probe, _ = BREAKER.before(opened(), after(5000))
    assert BREAKER.before(probe, after(5299)) == (probe, False)
    assert BREAKER.before(probe, after(5300)) == (
        BreakerState("half_open", 10, after(5300)),
        True,
    )


def test_a_probes_success_closes_it_and_its_failure_opens_it_anew() -> None:
    """C2"""
    probe = BreakerState("half_open", 10, after(300))
    assert BREAKER.after(probe, True, after(301)) == BreakerState()
    assert BREAKER.after(probe, False, after(301)) == BreakerState("open", 11, after(301))
    lenient = Breaker(failures=100)  # set so while it was half-open
    assert lenient.after(probe, False, after(301)) == BreakerState("open", 11, after(301))


def test_the_cooldown_counts_from_the_failure_that_opened_it() -> None:
    """C2: not from questions, nor from calls that were made before and fail late"""
    state = opened()
    for second in range(1, 300, 5):
        state, may = BREAKER.before(state, after(second))
        assert not may
        state = BREAKER.after(state, False, after(second))
    assert state.opened_at == NOON
    assert BREAKER.before(state, after(300))[1]


def test_one_of_which_nobody_knows_when_it_opened_counts_from_the_next_failure() -> None:
    """C2: its state may have been stored by hand"""
    assert BREAKER.after(BreakerState("open", 10), False, NOON) == opened(11)


@pytest.mark.parametrize("opened_at", [None, after(3600), after(10**9)])
def test_a_clock_that_went_back_does_not_keep_it_open_for_longer(
    opened_at: datetime | None,
) -> None:
    """C2"""
    state, may = BREAKER.before(BreakerState("open", 10, opened_at), NOON)
    assert (state, may) == (opened(), False)
    assert BREAKER.before(state, after(300))[1]


@pytest.mark.parametrize("seed", range(50))
def test_whatever_happens_it_blocks_for_one_cooldown_at_most_and_only_after_enough_failures(
    seed: int,
) -> None:
    """C2: random outcomes at random times; some probes are lost"""
    chance = random.Random(seed)
    limit, cooldown = chance.randint(1, 5), chance.choice([1, 30, 300])
    breaker = Breaker(failures=limit, cooldown=cooldown)
    state, now, in_a_row, blocked_since = BreakerState(), 0.0, 0, -1.0
    for _ in range(500):
        now += chance.choice([0, 0.1, 1, cooldown / 3, cooldown])
        was = state
        state, may = breaker.before(state, after(now))
        if not may:
            assert in_a_row >= limit
            blocked_since = now if blocked_since < 0 else blocked_since
            assert now - blocked_since < cooldown
            continue
        blocked_since = -1.0
        assert state.mode == ("closed" if was.mode == "closed" else "half_open")
        assert breaker.before(state, after(now))[1] == (state.mode == "closed")
        if chance.random() < 0.2:
            continue  # lost
        ok = chance.random() < 0.4
        state = breaker.after(state, ok, after(now))
        in_a_row = 0 if ok else in_a_row + 1
        assert state.failures == in_a_row
        assert (state.mode == "open") == (not ok and (in_a_row >= limit or was.mode != "closed"))


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"failures": 0}, "failures of a Breaker must be a whole number from 1 on, not 0"),
        ({"failures": True}, "failures of a Breaker must be a whole number from 1 on, not True"),
        ({"failures": 2.5}, "failures of a Breaker must be a whole number from 1 on, not 2.5"),
        ({"cooldown": 0}, "cooldown of a Breaker must be more than zero"),
        ({"cooldown": "soon"}, "cooldown of a Breaker: 'soon' is not a duration"),
    ],
)
def test_a_breaker_that_cannot_be_is_refused_in_one_line(
    arguments: dict[str, Any], said: str
) -> None:
    """C2"""
    with pytest.raises(ConfigurationError, match=f"^{said}"):
        Breaker(**arguments)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"mode": "half-open"}, "mode of a BreakerState must be closed, open or half_open, not"),
        ({"mode": None}, "mode of a BreakerState must be closed, open or half_open, not None"),
        ({"failures": -1}, "failures of a BreakerState must be a whole number, not -1"),
        ({"opened_at": "now"}, "opened_at of a BreakerState must be a datetime with a time zone"),
        (
            {"opened_at": NOON.replace(tzinfo=None)},
            "opened_at of a BreakerState must be a datetime with a time zone",
        ),
    ],
)
def test_a_state_that_cannot_be_is_refused_in_one_line(
    arguments: dict[str, Any], said: str
) -> None:
    """C2"""
    with pytest.raises(ConfigurationError, match=f"^{said}"):
        BreakerState(**arguments)
