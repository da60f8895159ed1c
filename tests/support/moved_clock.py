"""A clock for an AdaptiveScheduler that stands still until a test moves it."""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from itertools import count

_TURNS = 30
"""Turns of the event loop in which whatever was begun gets as far as it can by itself."""


class MovedTimer:
    """What was put off until the clock is moved that far."""

    def __init__(self, call: Callable[[], None]) -> None:
        self.call: Callable[[], None] | None = call

    def cancel(self) -> None:
        self.call = None


class MovedClock:
    def __init__(self) -> None:
        self._now = datetime(2026, 1, 1, tzinfo=UTC)
        self._begins_at = self._now
        self._numbers = count()
        self._timers: list[tuple[datetime, int, MovedTimer]] = []

    @property
    def seconds(self) -> float:
        """How far it was moved since it was made."""
        return round((self._now - self._begins_at).total_seconds(), 6)

    @property
    def timers(self) -> int:
        """How many calls are put off."""
        return sum(timer.call is not None for _, _, timer in self._timers)

    def now(self) -> datetime:
        return self._now

    def call_later(self, delay: timedelta, call: Callable[[], None]) -> MovedTimer:
        assert delay >= timedelta(0), "no clock can call before now"
        timer = MovedTimer(call)
        heapq.heappush(self._timers, (self._now + delay, next(self._numbers), timer))
        return timer

    async def forward(self, seconds: float) -> None:
        """Move it, with a stop at each call that is due on the way."""
        end = self._now + timedelta(seconds=seconds)
        await turn()
        while self._timers and self._timers[0][0] <= end:
            at, _, timer = heapq.heappop(self._timers)
            self._now = max(self._now, at)
            if timer.call is not None:
                timer.call()
                await turn()
        self._now = end


async def turn() -> None:
    """Let everything go on that waits for no clock."""
    for _ in range(_TURNS):
        await asyncio.sleep(0)
