"""B4: the pace at which a waiting job looks."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from hybrid_runner import ConfigurationError
from hybrid_runner.waiting.backoff import Backoff

PACE = Backoff("2s", cap="30s", jitter=0.2)


@pytest.mark.parametrize(
    ("chance", "seconds"),
    [
        (0.0, [1.6, 3.2, 6.4, 12.8, 24, 24]),
        (0.5, [2, 4, 8, 16, 27, 27]),
        (1.0, [2.4, 4.8, 9.6, 19.2, 30, 30]),
    ],
)
def test_delays_double_from_2_s_to_30_s_and_spread_by_a_fifth(
    chance: float, seconds: list[float]
) -> None:
    """B4"""
    delays = [PACE.delay(times, chance).total_seconds() for times in range(6)]
    assert delays == pytest.approx(seconds)


@pytest.mark.parametrize("times", [0, 5, 64, 1_000_000, -3])
@pytest.mark.parametrize("chance", [0.0, 0.3, 0.999999])
def test_no_delay_is_longer_than_the_cap_or_shorter_than_50_ms(times: int, chance: float) -> None:
    """B4"""
    for pace in (PACE, Backoff(0, cap=0), Backoff("1ms", cap="10d", factor=100, jitter=0.99)):
        delay = pace.delay(times, chance)
        cap = max(timedelta(milliseconds=50), Backoff(pace.cap, pace.cap, jitter=0).delay(0, 0))
        assert timedelta(milliseconds=50) <= delay <= cap


def test_without_jitter_the_delays_are_even() -> None:
    """B4"""
    pace = Backoff("1s", cap="3s", factor=1.5, jitter=0)
    assert [pace.delay(times, 0.9).total_seconds() for times in range(5)] == [1, 1.5, 2.25, 3, 3]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"base": "2m", "cap": "30s"}, "not longer than its cap: 2m is longer than 30s"),
        ({"base": "5m"}, "not longer than its cap: 5m is longer than 1m"),
        ({"factor": "2"}, "a factor between 1 and 100, not '2'"),
        ({"jitter": True}, "a jitter between 0 and 1, such as 0.2, not True"),
        ({"base": "soon", "cap": "30s"}, "'soon' is not a duration"),
        ({"base": -1, "cap": "30s"}, "is out of range"),
        ({"base": "1s", "cap": "30s", "factor": 0.5}, "a factor between 1 and 100, not 0.5"),
        ({"base": "1s", "cap": "30s", "factor": float("nan")}, "a factor between 1 and 100"),
        ({"base": "1s", "cap": "30s", "jitter": 1}, "a jitter between 0 and 1"),
        ({"base": "1s", "cap": "30s", "jitter": -0.1}, "a jitter between 0 and 1"),
        ({"base": "1s", "cap": "30s", "jitter": float("nan")}, "a jitter between 0 and 1"),
    ],
)
def test_a_pace_that_cannot_be_is_refused_in_one_line(arguments: dict[str, Any], said: str) -> None:
    """B4"""
    with pytest.raises(ConfigurationError, match=said):
        Backoff(**arguments)
