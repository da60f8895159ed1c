"""The time-outs of all attempts, with one timer: nearly every attempt ends long before its own."""

from __future__ import annotations

import asyncio
import heapq
from itertools import count
from typing import Protocol

_FEW = 64
"""So many ended ones may stay in the heap, whatever their share."""


class Limited(Protocol):
    """Something with a time-out. `expire` is called when that has passed, unless `ended` is
    true.
    """

    ended: bool

    def expire(self) -> None:
        """The time-out has passed."""


class Deadlines:
    """A heap of time-outs; ended ones are removed when they are more than half of it."""

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, Limited]] = []
        self._numbers = count()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._alarm: asyncio.TimerHandle | None = None
        self._living = 0

    def add(self, seconds: float, limited: Limited) -> None:
        """Call `limited.expire` in so many seconds."""
        if self._loop is None:
            self._loop = asyncio.get_running_loop()  # once: it asks the system each time
        when = self._loop.time() + seconds
        heapq.heappush(self._heap, (when, next(self._numbers), limited))
        self._living += 1
        if self._heap[0][2] is limited:
            self._set_alarm(self._loop, when)

    def ended(self) -> None:
        """One of those that were added has ended by itself."""
        self._living -= 1
        if len(self._heap) > 2 * self._living + _FEW:
            self._heap = [entry for entry in self._heap if not entry[2].ended]
            heapq.heapify(self._heap)

    def close(self) -> None:
        """Call no more `expire`."""
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None

    def _set_alarm(self, loop: asyncio.AbstractEventLoop, when: float) -> None:
        if self._alarm is not None:
            self._alarm.cancel()
        self._alarm = loop.call_at(when, self._ring)

    def _ring(self) -> None:
        self._alarm = None
        loop = asyncio.get_running_loop()
        now = loop.time()
        while self._heap and (self._heap[0][2].ended or self._heap[0][0] <= now):
            limited = heapq.heappop(self._heap)[2]
            if not limited.ended:
                limited.expire()
        if self._heap:
            self._set_alarm(loop, self._heap[0][0])
