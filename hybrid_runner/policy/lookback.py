"""How far back a heartbeat looks for jobs that are due and that nobody took."""

from __future__ import annotations

import math
from datetime import timedelta
from enum import Enum


class Lookback(Enum):
    """Jobs that have been due for longer are not looked for."""

    ALL = timedelta(days=36500)
    RECENT = timedelta(minutes=10)
    NONE = timedelta(0)


_RATIO = 5000
"""The lanes are read again after so many times what reading them took."""
_USUAL = 0.0001
"""Seconds that reading the lanes of one queue takes on a healthy table: they do not count."""
_LONGEST = 600.0
"""Seconds after which they are read again, whatever it costs."""


class Lookbacks:
    """Keeps the cost of the question small.

    While an old transaction keeps vacuum from cleaning up, the beginning of each lane is full of
    entries of jobs that were claimed long ago: every worker would read them with every heartbeat.
    Then it looks for jobs that came due lately; sweeps find the others.
    """

    def __init__(self) -> None:
        self._ready_at = {Lookback.ALL: -math.inf, Lookback.RECENT: -math.inf}
        self._took = {Lookback.ALL: 0.0, Lookback.RECENT: 0.0}

    def choose(self, now: float) -> Lookback:
        """How far to look back now."""
        for lookback, ready_at in self._ready_at.items():
            if now >= ready_at:
                return lookback
        return Lookback.NONE

    def took(self, lookback: Lookback, queues: int, seconds: float, now: float) -> None:
        """The lanes of so many queues were read, and Postgres took so long for it."""
        if lookback is Lookback.NONE:
            return
        cost = max(0.0, seconds - queues * _USUAL)
        # Once alone may be a busy processor or a cold cache: what counts is dear twice in a row.
        pause = _RATIO * min(cost, self._took[lookback])
        self._took[lookback] = cost
        self._ready_at[lookback] = now + min(_LONGEST, pause)
