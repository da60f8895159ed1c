"""E8: an interval that follows how often the data changes."""

from __future__ import annotations

import random
from datetime import timedelta
from statistics import median
from typing import Any

import pytest

from hybrid_runner import ConfigurationError
from hybrid_runner.resilience import Adapt

ADAPT = Adapt("5s", "5m", factor=1.5)


def seconds(of: float) -> timedelta:
    return timedelta(seconds=of)


@pytest.mark.parametrize(
    ("before", "changed", "expected"),
    [
        (60, True, 40),
        (60, False, 90),
        (5, True, 5),
        (7, True, 5),
        (300, False, 300),
        (250, False, 300),
    ],
)
def test_a_change_makes_it_shorter_and_none_makes_it_longer_within_its_limits(
    before: float, changed: bool, expected: float
) -> None:
    """E8"""
    assert ADAPT.interval(seconds(before), changed=changed) == seconds(expected)


@pytest.mark.parametrize("every", [20.0, 60.0])
def test_it_settles_where_every_second_look_finds_a_change(every: float) -> None:
    """E8: changes come at random, once in so many seconds"""
    chance, interval, found = random.Random(1), seconds(100), list[bool]()
    intervals = []
    for _ in range(5000):
        changed = chance.expovariate(1 / every) < interval.total_seconds()
        found.append(changed)
        interval = ADAPT.interval(interval, changed=changed)
        intervals.append(interval.total_seconds())
    assert 0.45 < sum(found) / len(found) < 0.55
    assert every / 3 < median(intervals) < every * 3


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"shortest": "1m", "longest": "5s"}, "longer than its longest: 1m is longer than 5s"),
        ({"shortest": 0, "longest": 1}, "shortest of an Adapt must be more than zero"),
        ({"shortest": 1, "longest": "x"}, "longest of an Adapt: 'x' is not a duration"),
        ({"shortest": 1, "longest": 2, "factor": 1}, "factor of an Adapt must be more than 1"),
        ({"shortest": 1, "longest": 2, "factor": "2"}, "at most 100, not '2'"),
        ({"shortest": 1, "longest": 2, "factor": 101}, "at most 100, not 101"),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(arguments: dict[str, Any], said: str) -> None:
    """E8"""
    with pytest.raises(ConfigurationError, match=said):
        Adapt(**arguments)
