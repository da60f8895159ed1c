"""When the next round of a host is, and which polls it gathers."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta
from typing import Final

SHORTEST: Final = timedelta(milliseconds=50)
"""Should a service never come to an end, whatever the reason, its host is no endless loop."""
APART: Final = timedelta(seconds=30)
"""At most so far are two rounds of a host from each other, as far as those that are well go."""
_BEGINNING: Final = datetime(2000, 1, 1, tzinfo=UTC)
_WHOLE: Final = 1 << 64
_GOLDEN: Final = 0x9E3779B97F4A7C15
"""The golden ratio's share of `_WHOLE`."""


def place_of(number: int) -> float:
    """The place of a host among all, from 0 to 1, by the number of its job: numbers in a row, as
    those of jobs that were stored together, are spread evenly, and any others well enough.
    """
    return (number * _GOLDEN % _WHOLE) / _WHOLE


def next_round(place: float, now: datetime, next_due: timedelta, tick: timedelta) -> timedelta:
    """How long until then: what comes due within a tick is polled together, and the ticks of two
    hosts are not the same. What has come due while a round went on waits for the next: else each
    round would be followed by one more, of a service or two.
    """
    if next_due >= tick:
        return next_due
    return max(next_due, (APART * place - (now - _BEGINNING)) % tick, SHORTEST)


def gathered(place: float, due_at: datetime, every: timedelta, tick: timedelta) -> datetime:
    """When a service that is well is polled together with others of its host that are: few rounds
    of many cost less than many of few.

    They are the same in each interval: `every` is moved once, by less than the way to the next
    moment, and never for more than a tick to a later one; from then on it is kept to the
    millisecond. How many are polled at a time is bounded elsewhere.
    """
    parts = math.ceil(every / APART)
    between = every / parts
    if between <= tick:
        return due_at  # a round for each tick, in any case
    latest = due_at + tick
    return latest - (latest - _BEGINNING - between * place) % between
